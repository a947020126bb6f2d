import com.google.common.util.concurrent.ListenableFuture;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import software.amazon.kinesis.producer.Attempt;
import software.amazon.kinesis.producer.KinesisProducer;
import software.amazon.kinesis.producer.KinesisProducerConfiguration;
import software.amazon.kinesis.producer.UserRecordFailedException;
import software.amazon.kinesis.producer.UserRecordResult;

/**
 * The KPL on one server, which is its Kinesis, CloudWatch and STS. Each line on standard input
 * is the number of the records to put next. What became of each is printed, PUT DATA KEY
 * HASHKEY SHARD SEQUENCE ATTEMPTS, or FAILED with the attempts; then DONE. The end of the input
 * ends it.
 */
public final class Produce {
    private static final int KEYS = 50;

    private final KinesisProducer producer;
    private final String stream;
    private int next;

    private Produce(String stream, KinesisProducerConfiguration configuration) {
        this.stream = stream;
        this.producer = new KinesisProducer(configuration);
    }

    public static void main(String[] args) throws Exception {
        String host = args[1];
        int port = Integer.parseInt(args[2]);
        Produce produce = new Produce(args[0], new KinesisProducerConfiguration()
            .setRegion(System.getenv("AWS_REGION"))
            .setKinesisEndpoint(host).setKinesisPort(port)
            .setCloudwatchEndpoint(host).setCloudwatchPort(port)
            .setStsEndpoint(host).setStsPort(port)
            .setCaCertFile(args[3]) // the certificate is checked
            .setTempDirectory(args[4])
            // A machine that is busy beside it must not fail what it puts.
            .setRequestTimeout(30_000).setRecordTtl(120_000)
            // Else what is put before the KPL has found it out loses its explicit hash key.
            .setRecordDistributionStrategyDefault("USER_PARTITION_KEY")
            .setMetricsUploadDelay(1000));
        BufferedReader orders = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            produce.put(Integer.parseInt(order));
            System.out.println("DONE");
        }
        produce.producer.destroy();
        System.exit(0);
    }

    /** Puts records of all keys, in every size up to two kilobytes, and waits for them. */
    private void put(int count) throws InterruptedException {
        List<String> lines = new ArrayList<>();
        List<ListenableFuture<UserRecordResult>> results = new ArrayList<>();
        for (int i = 0; i < count; i++, next++) {
            String key = "ключ-" + next % KEYS;
            String hashKey = next % 7 == 0 ? explicitHashKey(next) : null;
            String data = next + "-" + "x".repeat(next * 37 % 2048);
            lines.add(data + " " + key + " " + (hashKey == null ? "-" : hashKey));
            results.add(producer.addUserRecord(stream, key, hashKey,
                ByteBuffer.wrap(data.getBytes(StandardCharsets.UTF_8))));
        }
        for (int i = 0; i < count; i++) {
            System.out.println(outcome(lines.get(i), results.get(i)));
        }
    }

    private static String outcome(String line, ListenableFuture<UserRecordResult> future)
        throws InterruptedException {
        try {
            UserRecordResult result = future.get();
            return "PUT " + line + " " + result.getShardId() + " " + result.getSequenceNumber()
                + " " + result.getAttempts().size();
        } catch (ExecutionException e) {
            StringBuilder why = new StringBuilder("FAILED ").append(line);
            if (e.getCause() instanceof UserRecordFailedException failed) {
                for (Attempt attempt : failed.getResult().getAttempts()) {
                    why.append(' ').append(attempt.getErrorCode()).append(": ")
                        .append(attempt.getErrorMessage());
                }
            }
            return why.toString();
        }
    }

    /** Spread over all hash keys, by a stride that is odd. */
    private static String explicitHashKey(int i) {
        BigInteger all = BigInteger.ONE.shiftLeft(128);
        return all.divide(BigInteger.valueOf(997)).multiply(BigInteger.valueOf(i)).mod(all)
            .toString();
    }
}
