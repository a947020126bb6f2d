"""Opens or packs aggregates with awslabs' aws_kinesis_agg. aggregate_test.go describes the lines."""

import base64
import sys

from aws_kinesis_agg.aggregator import RecordAggregator
from aws_kinesis_agg.deaggregator import iter_deaggregate_records


def decode(text):
    return base64.b64decode(text)


def encode(data):
    return base64.b64encode(data).decode()


def open_line(line):
    key, data, _, _ = line.split(" ")
    record = {
        "SequenceNumber": "1",
        "PartitionKey": decode(key).decode(),
        "ApproximateArrivalTimestamp": None,
        "Data": decode(data),
    }
    users = []
    for user in iter_deaggregate_records([record], data_format="Boto3"):
        user = user["kinesis"]
        # The library returns a record that is no aggregate unchanged.
        data = decode(user["data"]) if user.get("aggregated") else user["data"]
        hash_key = user.get("explicitHashKey") or "-"
        users.append(f"{encode(user['partitionKey'].encode())}:{hash_key}:{encode(data)}")
    return " ".join(users)


def pack_line(line):
    aggregator = RecordAggregator()
    for user in line.split(" "):
        key, hash_key, data = user.split(":")
        hash_key = None if hash_key == "-" else hash_key
        if aggregator.add_user_record(decode(key).decode(), decode(data), hash_key):
            raise ValueError("the records take more than one aggregate")
    _, _, data = aggregator.clear_and_get().get_contents()
    return encode(data)


work = {"open": open_line, "pack": pack_line}[sys.argv[1]]
for line in sys.stdin:
    print(work(line.rstrip("\n")))
