#!/bin/sh
# Updates the images of docs/reports.md and docs/comparing.md. Run in the checkout, with the extra `plots` installed:
#   sh docs/images/draw.sh [hpc2n.swf]
# The image of three policies is updated only if the log is given (with hpc2n.swf.machines beside the log).
set -eu
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
config=examples/quickstart/queues.yaml
workload=examples/quickstart/workload.yaml
policy='partitions[0].queues[0].queues[0].properties.application.sort.policy'
yunikorn simulate --config $config --workload $workload --out "$out/run" >/dev/null
yunikorn compare --config $config --workload $workload --set "$policy=fifo,fair" --out "$out/compare" >/dev/null
for name in cluster queue-use waits; do
    cp "$out/run/$name.png" docs/images/
done
cp "$out/compare/compare-queues.png" docs/images/
for name in batch day; do
    awk -v file="<!-- file: $name.yaml -->" \
        '$0 == file { found = 1 } found && /^```$/ { exit } found && inside { print } found && /^```yaml$/ { inside = 1 }' \
        docs/comparing.md >"$out/$name.yaml"
done
yunikorn compare --config "$out/batch.yaml" --workload "$out/day.yaml" --seeds 1-3 --out "$out/curve" >/dev/null \
    --set root.batch.resources.max.vcore=4,6,8,12,16
cp "$out/curve/compare-curve-1.png" docs/images/compare-curve.png
if [ $# -gt 0 ]; then
    awk '/^`teams.yaml`$/ { found = 1 } found && /^```$/ { exit } found && inside { print } found && /^```yaml$/ { inside = 1 }' \
        docs/comparing.md >"$out/teams.yaml"
    yunikorn compare --config "$out/teams.yaml" --workload "$1" --swf-queue '' --swf-jobs tasks --out "$out/hpc2n" >/dev/null \
        --set 'partitions[0].queues[0].properties.application.sort.policy=fifo,fair,stateaware'
    cp "$out/hpc2n/compare-queues.png" docs/images/hpc2n-queues.png
fi
