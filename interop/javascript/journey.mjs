// The journey of interop_test.go with the JavaScript SDK v3: awsJson over HTTP/2 without TLS,
// by prior knowledge, which is what its Kinesis client speaks.
import {
  CreateStreamCommand,
  DeleteStreamCommand,
  DeregisterStreamConsumerCommand,
  DescribeStreamConsumerCommand,
  DescribeStreamSummaryCommand,
  GetRecordsCommand,
  GetShardIteratorCommand,
  KinesisClient,
  ListShardsCommand,
  MergeShardsCommand,
  PutRecordCommand,
  PutRecordsCommand,
  RegisterStreamConsumerCommand,
  SplitShardCommand,
  SubscribeToShardCommand,
  UpdateShardCountCommand,
} from "@aws-sdk/client-kinesis";
import { setTimeout as sleep } from "node:timers/promises";

const StreamName = process.env.STREAM;
const batchSize = 20;
const kinesis = new KinesisClient({});
const send = (Command, input) => kinesis.send(new Command(input));

const summary = async () =>
  (await send(DescribeStreamSummaryCommand, { StreamName })).StreamDescriptionSummary;
const shards = async () => (await send(ListShardsCommand, { StreamName })).Shards;
const isClosed = (shard) => shard.SequenceNumberRange.EndingSequenceNumber !== undefined;
const text = (record) =>
  record.PartitionKey + " " + Buffer.from(record.Data).toString("base64");
const bytes = (start) => Buffer.concat([Buffer.from(start), Buffer.from([0xff, 0])]);

async function waitActive() {
  while ((await summary()).StreamStatus !== "ACTIVE") await sleep(50);
}

async function put(batch) {
  const one = `${batch}-one`;
  await send(PutRecordCommand, {
    StreamName, PartitionKey: one, ExplicitHashKey: "0", Data: bytes(one),
  });
  const Records = Array.from({ length: batchSize }, (_, i) => ({
    PartitionKey: `${batch}-ключ-${i}`, Data: bytes(`${batch} ${i}`),
  }));
  const answer = await send(PutRecordsCommand, { StreamName, Records });
  if (answer.FailedRecordCount !== 0) throw new Error(JSON.stringify(answer));
}

async function poll(shard) {
  const records = [];
  let { ShardIterator } = await send(GetShardIteratorCommand, {
    StreamName, ShardId: shard.ShardId, ShardIteratorType: "TRIM_HORIZON",
  });
  while (ShardIterator) {
    const answer = await send(GetRecordsCommand, { ShardIterator, Limit: 7 });
    records.push(...answer.Records);
    ShardIterator = answer.NextShardIterator;
    const atTip = answer.Records.length === 0 && answer.MillisBehindLatest === 0;
    if (!isClosed(shard) && atTip) break;
  }
  return records;
}

// fanOut reads a shard to its end, which comes with the names of its children.
async function fanOut(ConsumerARN, shard, into) {
  const { EventStream } = await send(SubscribeToShardCommand, {
    ConsumerARN, ShardId: shard.ShardId, StartingPosition: { Type: "TRIM_HORIZON" },
  });
  for await (const { SubscribeToShardEvent: event } of EventStream) {
    into.push(...event.Records.map(text));
    if (event.ChildShards?.length > 0) return;
  }
}

await send(CreateStreamCommand, { StreamName, ShardCount: 2 });
await waitActive();
const { StreamARN } = await summary();
const { Consumer: { ConsumerARN } } = await send(RegisterStreamConsumerCommand, {
  StreamARN, ConsumerName: "javascript",
});
const consumer = async () =>
  (await send(DescribeStreamConsumerCommand, { ConsumerARN })).ConsumerDescription;
while ((await consumer()).ConsumerStatus !== "ACTIVE") await sleep(50);

const before = Date.now();
const fannedOut = [];
const readers = (await shards()).map((shard) => fanOut(ConsumerARN, shard, fannedOut));
await put("before");
const [first] = await shards();
await send(SplitShardCommand, {
  StreamName,
  ShardToSplit: first.ShardId,
  NewStartingHashKey: String(BigInt(first.HashKeyRange.EndingHashKey) / 2n),
});
await waitActive();
await put("after");
const [, right, , middle] = await shards();
await send(MergeShardsCommand, {
  StreamName, ShardToMerge: middle.ShardId, AdjacentShardToMerge: right.ShardId,
});
await waitActive();
await send(UpdateShardCountCommand, {
  StreamName, TargetShardCount: 2, ScalingType: "UNIFORM_SCALING",
});
await waitActive();
await Promise.all(readers);
for (const shard of await shards()) {
  if (shard.ParentShardId && isClosed(shard)) await fanOut(ConsumerARN, shard, fannedOut);
}

const polled = [];
for (const shard of await shards()) polled.push(...(await poll(shard)));
for (const { ApproximateArrivalTimestamp: at } of polled) {
  if (at < before - 1000 || at > Date.now() + 1000) throw new Error(`arrival ${at}`);
}
const open = (await shards()).filter((shard) => !isClosed(shard)).length;
await send(DeregisterStreamConsumerCommand, { ConsumerARN });
await send(DeleteStreamCommand, { StreamName, EnforceConsumerDeletion: true });
console.log(JSON.stringify({ polled: polled.map(text), fannedOut, open }));
kinesis.destroy();
