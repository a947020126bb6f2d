import java.nio.charset.StandardCharsets;
import software.amazon.awssdk.services.cloudwatch.CloudWatchAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.kinesis.KinesisAsyncClient;
import software.amazon.kinesis.common.ConfigsBuilder;
import software.amazon.kinesis.common.InitialPositionInStream;
import software.amazon.kinesis.common.InitialPositionInStreamExtended;
import software.amazon.kinesis.common.KinesisClientUtil;
import software.amazon.kinesis.common.StreamIdentifier;
import software.amazon.kinesis.coordinator.CoordinatorConfig;
import software.amazon.kinesis.coordinator.Scheduler;
import software.amazon.kinesis.exceptions.InvalidStateException;
import software.amazon.kinesis.exceptions.ShutdownException;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ProcessRecordsInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.lifecycle.events.ShutdownRequestedInput;
import software.amazon.kinesis.processor.ShardRecordProcessor;
import software.amazon.kinesis.processor.SingleStreamTracker;
import software.amazon.kinesis.retrieval.KinesisClientRecord;
import software.amazon.kinesis.retrieval.RetrievalSpecificConfig;
import software.amazon.kinesis.retrieval.fanout.FanOutConfig;
import software.amazon.kinesis.retrieval.polling.PollingConfig;

/**
 * A KCL worker that prints what it reads: RECORD SHARD KEY DATA. Its arguments are STREAM APP
 * WORKER RETRIEVAL [PROTOCOL [LAST]]. At the record with the data LAST it makes a checkpoint, and
 * ends at once. An empty PROTOCOL is the KCL's own.
 */
public final class Worker {
    private static String last;

    public static void main(String[] args) {
        String stream = args[0];
        String app = args[1];
        String worker = args[2];
        boolean fanOut = args[3].equals("fan-out");
        KinesisAsyncClient kinesis =
            KinesisClientUtil.createKinesisAsyncClient(KinesisAsyncClient.builder());
        ConfigsBuilder configs = new ConfigsBuilder(
            new SingleStreamTracker(StreamIdentifier.singleStreamInstance(stream),
                InitialPositionInStreamExtended.newInitialPosition(
                    InitialPositionInStream.TRIM_HORIZON)),
            app, kinesis, DynamoDbAsyncClient.create(), CloudWatchAsyncClient.create(), worker,
            Reader::new);
        RetrievalSpecificConfig how = fanOut
            ? new FanOutConfig(kinesis).streamName(stream).applicationName(app)
            : new PollingConfig(stream, kinesis).idleTimeBetweenReadsInMillis(200);
        CoordinatorConfig coordinator = configs.coordinatorConfig()
            .parentShardPollIntervalMillis(500)
            .shardConsumerDispatchPollIntervalMillis(200)
            .schedulerInitializationBackoffTimeMillis(200);
        if (args.length > 4 && !args[4].isEmpty()) {
            speak(coordinator, args[4]);
        }
        if (args.length > 5) {
            last = args[5];
        }
        Scheduler scheduler = new Scheduler(
            configs.checkpointConfig(), coordinator,
            configs.leaseManagementConfig().failoverTimeMillis(3000)
                .shardSyncIntervalMillis(2000)
                .leasesRecoveryAuditorExecutionFrequencyMillis(2000),
            configs.lifecycleConfig(), configs.metricsConfig(), configs.processorConfig(),
            configs.retrievalConfig().retrievalSpecificConfig(how));
        Runtime.getRuntime().addShutdownHook(new Thread(scheduler::shutdown));
        scheduler.run();
    }

    /** Sets the protocol of a KCL 3: a constant of ClientVersionConfig, which a KCL 2 lacks. */
    private static void speak(CoordinatorConfig coordinator, String protocol) {
        try {
            Class<?> type = Class.forName(CoordinatorConfig.class.getName() + "$ClientVersionConfig");
            for (Object constant : type.getEnumConstants()) {
                if (constant.toString().equals(protocol)) {
                    CoordinatorConfig.class.getMethod("clientVersionConfig", type)
                        .invoke(coordinator, constant);
                    return;
                }
            }
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException("this KCL has no protocols", e);
        }
        throw new IllegalArgumentException("this KCL has no protocol " + protocol);
    }

    private static final class Reader implements ShardRecordProcessor {
        private String shard;

        @Override
        public void initialize(InitializationInput input) {
            shard = input.shardId();
            System.out.println("SHARD " + shard);
        }

        @Override
        public void processRecords(ProcessRecordsInput input) {
            for (KinesisClientRecord record : input.records()) {
                String data = StandardCharsets.UTF_8.decode(record.data()).toString();
                System.out.println("RECORD " + shard + " " + record.partitionKey() + " " + data);
                if (data.equals(last)) {
                    checkpoint(() -> input.checkpointer().checkpoint(
                        record.sequenceNumber(), record.subSequenceNumber()));
                    Runtime.getRuntime().halt(0);
                }
            }
            if (!input.records().isEmpty()) {
                checkpoint(input.checkpointer()::checkpoint);
            }
        }

        @Override
        public void leaseLost(LeaseLostInput input) {
            System.out.println("LOST " + shard);
        }

        @Override
        public void shardEnded(ShardEndedInput input) {
            System.out.println("END " + shard);
            checkpoint(input.checkpointer()::checkpoint);
        }

        @Override
        public void shutdownRequested(ShutdownRequestedInput input) {
            checkpoint(input.checkpointer()::checkpoint);
        }

        private interface Step {
            void run() throws InvalidStateException, ShutdownException;
        }

        private static void checkpoint(Step step) {
            try {
                step.run();
            } catch (ShutdownException lost) {
                System.out.println("FENCED");
            } catch (InvalidStateException e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
