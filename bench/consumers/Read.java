import java.net.URI;
import java.util.concurrent.atomic.AtomicLong;
import software.amazon.awssdk.services.cloudwatch.CloudWatchAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.kinesis.KinesisAsyncClient;
import software.amazon.kinesis.common.ConfigsBuilder;
import software.amazon.kinesis.common.InitialPositionInStream;
import software.amazon.kinesis.common.InitialPositionInStreamExtended;
import software.amazon.kinesis.common.KinesisClientUtil;
import software.amazon.kinesis.common.StreamIdentifier;
import software.amazon.kinesis.coordinator.Scheduler;
import software.amazon.kinesis.exceptions.InvalidStateException;
import software.amazon.kinesis.exceptions.ShutdownException;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.lifecycle.events.ShutdownRequestedInput;
import software.amazon.kinesis.metrics.MetricsLevel;
import software.amazon.kinesis.processor.ShardRecordProcessor;
import software.amazon.kinesis.processor.SingleStreamTracker;
import software.amazon.kinesis.retrieval.KinesisClientRecord;
import software.amazon.kinesis.retrieval.polling.PollingConfig;

/**
 * A KCL worker as a reader of the benchmark: ENDPOINT STREAM APP TOTAL. It checkpoints every ten
 * seconds, as the KCL's guide suggests, and sends no metrics.
 */
public final class Read {
    private static final long CHECKPOINT_NANOS = 10_000_000_000L;

    private static final AtomicLong records = new AtomicLong();
    private static final AtomicLong bytes = new AtomicLong();
    private static long total;

    public static void main(String[] args) throws Exception {
        URI endpoint = URI.create(args[0]);
        total = Long.parseLong(args[3]);
        KinesisAsyncClient kinesis = KinesisClientUtil.createKinesisAsyncClient(
            KinesisAsyncClient.builder().endpointOverride(endpoint));
        ConfigsBuilder configs = new ConfigsBuilder(
            new SingleStreamTracker(StreamIdentifier.singleStreamInstance(args[1]),
                InitialPositionInStreamExtended.newInitialPosition(
                    InitialPositionInStream.TRIM_HORIZON)),
            args[2], kinesis, DynamoDbAsyncClient.builder().endpointOverride(endpoint).build(),
            CloudWatchAsyncClient.builder().endpointOverride(endpoint).build(), "reader",
            Reader::new);
        Scheduler scheduler = new Scheduler(
            configs.checkpointConfig(),
            configs.coordinatorConfig().schedulerInitializationBackoffTimeMillis(200),
            // It finds its leases sooner, and does not sleep a minute after the first look at shards.
            configs.leaseManagementConfig().failoverTimeMillis(3000).shardSyncIntervalMillis(200),
            configs.lifecycleConfig(),
            configs.metricsConfig().metricsLevel(MetricsLevel.NONE), configs.processorConfig(),
            configs.retrievalConfig().retrievalSpecificConfig(
                new PollingConfig(args[1], kinesis).idleTimeBetweenReadsInMillis(200)));
        Thread worker = new Thread(scheduler);
        worker.setDaemon(true);
        worker.start();
        System.in.read(); // the parent reads the figures before it closes the input
        System.exit(0);
    }

    /** Counts records, and says when the first tenth and the last one are there. */
    private static void add(long count, long size) {
        bytes.addAndGet(size);
        long now = records.addAndGet(count);
        if (now >= total / 10 && now - count < total / 10) {
            System.out.println("warm {\"records\": " + now + "}");
        }
        if (now >= total && now - count < total) {
            System.out.println("done {\"records\": " + now + "}");
        }
    }

    private static final class Reader implements ShardRecordProcessor {
        private long saved = System.nanoTime();

        @Override
        public void initialize(InitializationInput input) {
        }

        @Override
        public void processRecords(ProcessRecordsInput input) {
            long size = 0;
            for (KinesisClientRecord record : input.records()) {
                size += record.data().remaining();
            }
            add(input.records().size(), size);
            if (System.nanoTime() - saved > CHECKPOINT_NANOS) {
                saved = System.nanoTime();
                checkpoint(input.checkpointer()::checkpoint);
            }
        }

        @Override
        public void leaseLost(LeaseLostInput input) {
        }

        @Override
        public void shardEnded(ShardEndedInput input) {
            checkpoint(input.checkpointer()::checkpoint);
        }

        @Override
        public void shutdownRequested(ShutdownRequestedInput input) {
        }

        private interface Step {
            void run() throws InvalidStateException, ShutdownException;
        }

        private static void checkpoint(Step step) {
            try {
                step.run();
            } catch (InvalidStateException | ShutdownException e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
