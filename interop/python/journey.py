"""The journey (see doc.go) with boto3: awsJson over HTTP/1.1."""

import base64
import json
import os
import threading
import time

import boto3

STREAM = os.environ["STREAM"]
BATCH = 20
kinesis = boto3.client("kinesis")


def wait_active():
    kinesis.get_waiter("stream_exists").wait(StreamName=STREAM, WaiterConfig={"Delay": 1})
    while kinesis.describe_stream_summary(StreamName=STREAM)["StreamDescriptionSummary"][
        "StreamStatus"
    ] != "ACTIVE":
        time.sleep(0.05)


def put(batch):
    one = f"{batch}-one"
    kinesis.put_record(
        StreamName=STREAM, PartitionKey=one, ExplicitHashKey="0", Data=one.encode() + b"\xff\x00"
    )
    records = [
        {"PartitionKey": f"{batch}-ключ-{i}", "Data": f"{batch} {i}".encode() + b"\xff\x00"}
        for i in range(BATCH)
    ]
    answer = kinesis.put_records(StreamName=STREAM, Records=records)
    assert answer["FailedRecordCount"] == 0 and len(answer["Records"]) == BATCH, answer


def shards():
    return kinesis.list_shards(StreamName=STREAM)["Shards"]


def text(record):
    return record["PartitionKey"] + " " + base64.b64encode(record["Data"]).decode()


def poll(shard):
    iterator = kinesis.get_shard_iterator(
        StreamName=STREAM, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    closed = "EndingSequenceNumber" in shard["SequenceNumberRange"]
    records = []
    while iterator:
        answer = kinesis.get_records(ShardIterator=iterator, Limit=7)
        records += answer["Records"]
        iterator = answer.get("NextShardIterator")
        if not closed and not answer["Records"] and answer["MillisBehindLatest"] == 0:
            break
    return records


def fan_out(consumer, shard, into):
    """Reads a shard to its end, up to the event that names its children."""
    answer = kinesis.subscribe_to_shard(
        ConsumerARN=consumer,
        ShardId=shard["ShardId"],
        StartingPosition={"Type": "TRIM_HORIZON"},
    )
    for event in answer["EventStream"]:
        event = event["SubscribeToShardEvent"]
        into += [text(record) for record in event["Records"]]
        if event.get("ChildShards"):
            return


def main():
    kinesis.create_stream(StreamName=STREAM, ShardCount=2)
    wait_active()
    arn = kinesis.describe_stream_summary(StreamName=STREAM)["StreamDescriptionSummary"][
        "StreamARN"
    ]
    consumer = kinesis.register_stream_consumer(StreamARN=arn, ConsumerName="python")["Consumer"][
        "ConsumerARN"
    ]
    while kinesis.describe_stream_consumer(ConsumerARN=consumer)["ConsumerDescription"][
        "ConsumerStatus"
    ] != "ACTIVE":
        time.sleep(0.05)

    before, fanned = time.time(), []
    readers = [
        threading.Thread(target=fan_out, args=(consumer, shard, fanned)) for shard in shards()
    ]
    for reader in readers:
        reader.start()
    put("before")
    first = shards()[0]["HashKeyRange"]
    kinesis.split_shard(
        StreamName=STREAM,
        ShardToSplit=shards()[0]["ShardId"],
        NewStartingHashKey=str(int(first["EndingHashKey"]) // 2),
    )
    wait_active()
    put("after")
    kinesis.merge_shards(
        StreamName=STREAM,
        ShardToMerge=shards()[3]["ShardId"],
        AdjacentShardToMerge=shards()[1]["ShardId"],
    )
    wait_active()
    kinesis.update_shard_count(
        StreamName=STREAM, TargetShardCount=2, ScalingType="UNIFORM_SCALING"
    )
    wait_active()
    for reader in readers:
        reader.join()
    for shard in shards():
        if "ParentShardId" in shard and "EndingSequenceNumber" in shard["SequenceNumberRange"]:
            fan_out(consumer, shard, fanned)

    polled = [record for shard in shards() for record in poll(shard)]
    arrived = [record["ApproximateArrivalTimestamp"].timestamp() for record in polled]
    assert all(before - 1 <= at <= time.time() + 1 for at in arrived), arrived
    left = len([s for s in shards() if "EndingSequenceNumber" not in s["SequenceNumberRange"]])
    kinesis.deregister_stream_consumer(ConsumerARN=consumer)
    kinesis.delete_stream(StreamName=STREAM, EnforceConsumerDeletion=True)
    print(json.dumps({"polled": [text(r) for r in polled], "fannedOut": fanned, "open": left}))


main()
