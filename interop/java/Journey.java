import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.http.Protocol;
import software.amazon.awssdk.http.nio.netty.NettyNioAsyncHttpClient;
import software.amazon.awssdk.services.kinesis.KinesisAsyncClient;
import software.amazon.awssdk.services.kinesis.KinesisClient;
import software.amazon.awssdk.services.kinesis.model.ConsumerStatus;
import software.amazon.awssdk.services.kinesis.model.GetRecordsResponse;
import software.amazon.awssdk.services.kinesis.model.PutRecordsRequestEntry;
import software.amazon.awssdk.services.kinesis.model.Record;
import software.amazon.awssdk.services.kinesis.model.ScalingType;
import software.amazon.awssdk.services.kinesis.model.Shard;
import software.amazon.awssdk.services.kinesis.model.ShardIteratorType;
import software.amazon.awssdk.services.kinesis.model.StreamStatus;
import software.amazon.awssdk.services.kinesis.model.SubscribeToShardEvent;
import software.amazon.awssdk.services.kinesis.model.SubscribeToShardResponseHandler;

/**
 * The journey of interop_test.go with the Java SDK v2: CBOR over HTTP/1.1 by its synchronous
 * client, and enhanced fan-out over HTTP/2 by its asynchronous one.
 */
public final class Journey {
    private static final String STREAM = System.getenv("STREAM");
    private static final int BATCH = 20;

    private final KinesisClient kinesis = KinesisClient.create();
    private final KinesisAsyncClient async = KinesisAsyncClient.builder()
        .httpClientBuilder(NettyNioAsyncHttpClient.builder().protocol(Protocol.HTTP2))
        .build();
    private final List<String> fannedOut = Collections.synchronizedList(new ArrayList<>());

    public static void main(String[] args) throws Exception {
        new Journey().run();
        System.exit(0);
    }

    private void run() throws Exception {
        kinesis.createStream(r -> r.streamName(STREAM).shardCount(2));
        waitActive();
        String arn = kinesis.describeStreamSummary(r -> r.streamName(STREAM))
            .streamDescriptionSummary().streamARN();
        String consumer = kinesis.registerStreamConsumer(
            r -> r.streamARN(arn).consumerName("java")).consumer().consumerARN();
        while (kinesis.describeStreamConsumer(r -> r.consumerARN(consumer))
            .consumerDescription().consumerStatus() != ConsumerStatus.ACTIVE) {
            Thread.sleep(50);
        }

        Instant before = Instant.now().minusSeconds(1);
        List<CompletableFuture<Void>> readers = new ArrayList<>();
        for (Shard shard : shards()) {
            readers.add(fanOut(consumer, shard));
        }
        put("before");
        Shard first = shards().get(0);
        String middle = new BigInteger(first.hashKeyRange().endingHashKey()).shiftRight(1).toString();
        kinesis.splitShard(r -> r.streamName(STREAM).shardToSplit(first.shardId())
            .newStartingHashKey(middle));
        waitActive();
        put("after");
        List<Shard> now = shards();
        kinesis.mergeShards(r -> r.streamName(STREAM).shardToMerge(now.get(3).shardId())
            .adjacentShardToMerge(now.get(1).shardId()));
        waitActive();
        kinesis.updateShardCount(r -> r.streamName(STREAM).targetShardCount(2)
            .scalingType(ScalingType.UNIFORM_SCALING));
        waitActive();
        for (CompletableFuture<Void> reader : readers) {
            reader.join();
        }
        for (Shard shard : shards()) {
            if (shard.parentShardId() != null && isClosed(shard)) {
                fanOut(consumer, shard).join();
            }
        }

        List<Record> polled = new ArrayList<>();
        for (Shard shard : shards()) {
            polled.addAll(poll(shard));
        }
        for (Record record : polled) {
            Instant at = record.approximateArrivalTimestamp();
            if (at.isBefore(before) || at.isAfter(Instant.now().plusSeconds(1))) {
                throw new IllegalStateException("arrival " + at);
            }
        }
        long open = shards().stream().filter(shard -> !isClosed(shard)).count();
        kinesis.deregisterStreamConsumer(r -> r.consumerARN(consumer));
        kinesis.deleteStream(r -> r.streamName(STREAM).enforceConsumerDeletion(true));
        System.out.println("{\"polled\":" + json(polled.stream().map(Journey::text).toList())
            + ",\"fannedOut\":" + json(fannedOut) + ",\"open\":" + open + "}");
    }

    private void waitActive() throws InterruptedException {
        while (kinesis.describeStreamSummary(r -> r.streamName(STREAM))
            .streamDescriptionSummary().streamStatus() != StreamStatus.ACTIVE) {
            Thread.sleep(50);
        }
    }

    private void put(String batch) {
        String one = batch + "-one";
        kinesis.putRecord(r -> r.streamName(STREAM).partitionKey(one).explicitHashKey("0")
            .data(bytes(one)));
        List<PutRecordsRequestEntry> entries = new ArrayList<>();
        for (int i = 0; i < BATCH; i++) {
            entries.add(PutRecordsRequestEntry.builder().partitionKey(batch + "-ключ-" + i)
                .data(bytes(batch + " " + i)).build());
        }
        int failed = kinesis.putRecords(r -> r.streamName(STREAM).records(entries))
            .failedRecordCount();
        if (failed != 0) {
            throw new IllegalStateException(failed + " records failed");
        }
    }

    private List<Shard> shards() {
        return kinesis.listShards(r -> r.streamName(STREAM)).shards();
    }

    private List<Record> poll(Shard shard) {
        List<Record> records = new ArrayList<>();
        String iterator = kinesis.getShardIterator(r -> r.streamName(STREAM)
            .shardId(shard.shardId()).shardIteratorType(ShardIteratorType.TRIM_HORIZON))
            .shardIterator();
        while (iterator != null) {
            String from = iterator;
            GetRecordsResponse answer = kinesis.getRecords(r -> r.shardIterator(from).limit(7));
            records.addAll(answer.records());
            iterator = answer.nextShardIterator();
            if (!isClosed(shard) && answer.records().isEmpty() && answer.millisBehindLatest() == 0) {
                break;
            }
        }
        return records;
    }

    /** Reads a shard to its end, after which the server ends the subscription. */
    private CompletableFuture<Void> fanOut(String consumer, Shard shard) {
        return async.subscribeToShard(
            r -> r.consumerARN(consumer).shardId(shard.shardId())
                .startingPosition(p -> p.type(ShardIteratorType.TRIM_HORIZON)),
            SubscribeToShardResponseHandler.builder()
                .subscriber(SubscribeToShardResponseHandler.Visitor.builder()
                    .onSubscribeToShardEvent(this::event).build())
                .build());
    }

    private void event(SubscribeToShardEvent event) {
        event.records().forEach(record -> fannedOut.add(text(record)));
    }

    private static boolean isClosed(Shard shard) {
        return shard.sequenceNumberRange().endingSequenceNumber() != null;
    }

    private static SdkBytes bytes(String start) {
        byte[] text = start.getBytes(StandardCharsets.UTF_8);
        byte[] all = java.util.Arrays.copyOf(text, text.length + 2);
        all[text.length] = (byte) 0xff;
        return SdkBytes.fromByteArray(all);
    }

    private static String text(Record record) {
        return record.partitionKey() + " "
            + Base64.getEncoder().encodeToString(record.data().asByteArray());
    }

    /** Nothing in the texts needs an escape. */
    private static String json(List<String> texts) {
        return texts.isEmpty() ? "[]" : "[\"" + String.join("\",\"", texts) + "\"]";
    }
}
