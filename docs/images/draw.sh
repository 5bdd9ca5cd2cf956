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
if [ $# -gt 0 ]; then
    awk '/^`teams.yaml`$/ { found = 1 } found && /^```$/ { exit } found && inside { print } found && /^```yaml$/ { inside = 1 }' \
        docs/comparing.md >"$out/teams.yaml"
    yunikorn compare --config "$out/teams.yaml" --workload "$1" --swf-queue '' --swf-jobs tasks --out "$out/hpc2n" >/dev/null \
        --set 'partitions[0].queues[0].properties.application.sort.policy=fifo,fair,stateaware'
    cp "$out/hpc2n/compare-queues.png" docs/images/hpc2n-queues.png
fi
