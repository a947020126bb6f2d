// Opens or packs aggregates by awslabs' aws-kinesis-agg: see aggregate_test.go for the lines.
import agg from "aws-kinesis-agg";
import { createInterface } from "node:readline";

const decode = (text) => Buffer.from(text, "base64");
const encode = (data) => Buffer.from(data).toString("base64");

function open(line) {
  const [key, data] = line.split(" ");
  let users;
  const record = { partitionKey: decode(key).toString(), sequenceNumber: "1", data };
  agg.deaggregateSync(record, true, (error, records) => {
    if (error) throw error;
    users = records;
  });
  return users.map((user) =>
    [encode(user.partitionKey), user.explicitPartitionKey ?? "-", user.data].join(":")).join(" ");
}

function pack(line) {
  const aggregator = new agg.RecordAggregator();
  for (const user of line.split(" ")) {
    const [key, hashKey, data] = user.split(":");
    aggregator.addUserRecord({
      partitionKey: decode(key).toString(),
      explicitHashKey: hashKey === "-" ? undefined : hashKey,
      data: decode(data),
    });
  }
  return encode(aggregator.build().data);
}

const work = { open, pack }[process.argv[2]];
for await (const line of createInterface({ input: process.stdin })) console.log(work(line));
