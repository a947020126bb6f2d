import com.google.protobuf.InvalidProtocolBufferException;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.StringJoiner;
import software.amazon.kinesis.retrieval.AggregatorUtil;
import software.amazon.kinesis.retrieval.KinesisClientRecord;
import software.amazon.kinesis.retrieval.kpl.Messages;

/**
 * Opens Kinesis records as the KCL does: see aggregate_test.go for the lines. LOST stands for a
 * record of which the KCL loses a part.
 */
public final class Deaggregate {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.println(open(line.split(" ", -1)));
        }
        out.flush();
    }

    private static String open(String[] fields) throws InvalidProtocolBufferException {
        String key = new String(Base64.getDecoder().decode(fields[0]), StandardCharsets.UTF_8);
        byte[] data = Base64.getDecoder().decode(fields[1]);
        if (loses(key, data)) {
            return "LOST";
        }
        return text(new AggregatorUtil()
            .deaggregate(List.of(record(key, data)), fields[2], fields[3]));
    }

    /** Whether fewer records come out of a message than are in it, whatever the shard's range. */
    private static boolean loses(String key, byte[] data) throws InvalidProtocolBufferException {
        List<KinesisClientRecord> records;
        try {
            records = new AggregatorUtil().deaggregate(List.of(record(key, data)));
        } catch (NoClassDefFoundError e) { // 2.7.2 reports the loss by a class that left Java
            return true;
        }
        if (records.size() == 1 && !records.get(0).aggregated()) {
            return false;
        }
        byte[] message = Arrays.copyOfRange(data, 4, data.length - 16);
        return records.size() < Messages.AggregatedRecord.parseFrom(message).getRecordsCount();
    }

    private static KinesisClientRecord record(String key, byte[] data) {
        return KinesisClientRecord.builder()
            .partitionKey(key).sequenceNumber("1").data(ByteBuffer.wrap(data)).build();
    }

    private static String text(List<KinesisClientRecord> records) {
        StringJoiner all = new StringJoiner(" ");
        for (KinesisClientRecord record : records) {
            all.add(text(record));
        }
        return all.toString();
    }

    private static String text(KinesisClientRecord record) {
        byte[] data = new byte[record.data().remaining()];
        record.data().duplicate().get(data);
        String hashKey = record.explicitHashKey();
        return base64(record.partitionKey().getBytes(StandardCharsets.UTF_8)) + ":"
            + (hashKey == null ? "-" : hashKey) + ":" + base64(data);
    }

    private static String base64(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }
}
