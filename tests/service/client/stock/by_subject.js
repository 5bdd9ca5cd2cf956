// A client of the newer layout in another language: `node by_subject.js PROTO ADDRESS` prints what it was told.
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const [proto, address] = process.argv.slice(2);
const si = grpc.loadPackageDefinition(loader.loadSync(proto, { keepCase: true, enums: String, arrays: true })).si.v1;
const scheduler = new si.Scheduler(address, grpc.credentials.createInsecure());
const told = { placed: [], accepted: [], nodes: [], released: [], ends: [] };
const vcore = (value) => ({ resources: { vcore: { value } } });
const ask = (key) => ({ allocationKey: key, applicationID: "app", resourcePerAlloc: vcore(1) });

scheduler.RegisterResourceManager({ rmID: "stock", version: "1.9" }, (error) => {
  if (error) throw error;
  const nodes = scheduler.UpdateNode();
  const applications = scheduler.UpdateApplication();
  const allocations = scheduler.UpdateAllocation();
  const streams = [nodes, applications, allocations];
  let known = 0;
  const ready = () => {
    known += 1;
    if (known === 2) allocations.write({ rmID: "stock", allocations: ["x", "y", "z"].map(ask) });
  };
  nodes.on("data", (response) => {
    told.nodes.push(...response.accepted.map((one) => one.nodeID));
    if (response.accepted.length) ready();
  });
  applications.on("data", (response) => {
    told.accepted.push(...response.accepted.map((one) => one.applicationID));
    if (response.accepted.length) ready();
  });
  allocations.on("data", (response) => {
    told.placed.push(...response.new.map((one) => [one.allocationKey, one.nodeID]));
    told.released.push(...response.released.map((one) => [one.allocationKey, one.terminationType]));
    if (response.new.length && told.placed.length === 2) {
      const release = { applicationID: "app", allocationKey: "x", terminationType: "STOPPED_BY_RM" };
      allocations.write({ rmID: "stock", releases: { allocationsToRelease: [release] } });
    }
    if (told.placed.length === 3 && told.released.length) streams.forEach((stream) => stream.end());
  });
  for (const stream of streams) {
    stream.on("error", () => {});
    stream.on("status", (status) => {
      told.ends.push(grpc.status[status.code]);
      if (told.ends.length === 3) console.log(JSON.stringify(told));
      if (told.ends.length === 3) scheduler.close();
    });
  }
  allocations.write({ rmID: "stock" });
  const owner = { user: "ann", groups: ["staff"] };
  applications.write({ rmID: "stock", new: [{ applicationID: "app", queueName: "root.a", ugi: owner }] });
  nodes.write({ rmID: "stock", nodes: [{ nodeID: "n1", action: "CREATE", schedulableResource: vcore(2) }] });
});
