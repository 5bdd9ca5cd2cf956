#!/bin/sh
# Draws the pictures of docs/simulation.md anew. Run it in the checkout, with the extra `plots` installed:
#   sh docs/images/draw.sh
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
