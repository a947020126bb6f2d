import com.google.common.util.concurrent.FutureCallback;
import com.google.common.util.concurrent.Futures;
import com.google.common.util.concurrent.MoreExecutors;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import software.amazon.kinesis.producer.KinesisProducer;
import software.amazon.kinesis.producer.KinesisProducerConfiguration;
import software.amazon.kinesis.producer.UserRecordResult;

/** The KPL as a client of the benchmark: ADDRESS CA TEMP FILE PASSES MILLISECONDS LIMITS. */
public final class Put {
    /** The KPL's own guide asks for a bound; without one its process may run out of memory. */
    private static final int OUTSTANDING = 20_000;
    private static final int WARM = 2000;

    private record Event(String key, byte[] data) { }

    private final KinesisProducer producer;
    private final Semaphore room = new Semaphore(OUTSTANDING);
    private final AtomicInteger put = new AtomicInteger();
    private final AtomicInteger failed = new AtomicInteger();

    private Put(KinesisProducerConfiguration configuration) {
        producer = new KinesisProducer(configuration);
    }

    public static void main(String[] args) throws Exception {
        String host = args[0].substring(0, args[0].lastIndexOf(':'));
        int port = Integer.parseInt(args[0].substring(args[0].lastIndexOf(':') + 1));
        KinesisProducerConfiguration configuration = new KinesisProducerConfiguration()
            .setRegion(System.getenv("AWS_REGION"))
            .setKinesisEndpoint(host).setKinesisPort(port)
            .setCloudwatchEndpoint(host).setCloudwatchPort(port)
            .setStsEndpoint(host).setStsPort(port)
            .setCaCertFile(args[1]).setTempDirectory(args[2])
            .setMetricsLevel("none")
            .setRecordTtl(600_000);
        if (args[6].equals("off")) {
            configuration.setRateLimit(1_000_000); // else it holds itself to 1.5 times AWS's
        }
        List<Event> events = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(args[3]))) {
            int tab = line.indexOf('\t');
            events.add(new Event(line.substring(0, tab),
                line.substring(tab + 1).getBytes(StandardCharsets.UTF_8)));
        }
        Put client = new Put(configuration);
        client.all("warm", events.subList(0, Math.min(WARM, events.size())), 1, 60_000);
        client.put.set(0);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        orders.readLine();
        long start = System.nanoTime();
        client.all("load", events, Integer.parseInt(args[4]), Long.parseLong(args[5]));
        System.out.printf("done {\"records\": %d, \"failed\": %d, \"seconds\": %.4f}%n",
            client.put.get(), client.failed.get(), (System.nanoTime() - start) / 1e9);
        orders.readLine(); // the figures are read while the processes are there
        client.producer.destroy();
        System.exit(0);
    }

    /** Puts the events as fast as there is room, and waits for them. */
    private void all(String stream, List<Event> events, int passes, long milliseconds)
        throws InterruptedException {
        long end = System.nanoTime() + milliseconds * 1_000_000;
        for (int pass = 0; pass < passes; pass++) {
            for (Event event : events) {
                if (System.nanoTime() > end) {
                    break;
                }
                if (!room.tryAcquire()) {
                    producer.flush(stream); // what it still gathers would keep the room
                    room.acquire();
                }
                Futures.addCallback(
                    producer.addUserRecord(stream, event.key, ByteBuffer.wrap(event.data)),
                    callback, MoreExecutors.directExecutor());
            }
        }
        producer.flush(stream);
        room.acquire(OUTSTANDING);
        room.release(OUTSTANDING);
    }

    private final FutureCallback<UserRecordResult> callback = new FutureCallback<>() {
        @Override
        public void onSuccess(UserRecordResult result) {
            put.incrementAndGet();
            room.release();
        }

        @Override
        public void onFailure(Throwable failure) {
            failed.incrementAndGet();
            room.release();
        }
    };
}
