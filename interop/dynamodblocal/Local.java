import java.lang.reflect.Field;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import software.amazon.dynamodb.services.local.main.ServerRunner;
import software.amazon.dynamodb.services.local.server.DynamoDBProxyServer;

/**
 * Runs DynamoDB Local in memory on a free port of the loopback, which it prints, until its
 * standard input ends. By itself it would listen on every interface, and on a port that somebody
 * else may have taken in the meantime.
 */
public final class Local {
  public static void main(String[] args) throws Exception {
    DynamoDBProxyServer local = ServerRunner.createServerFromCommandLineArgs(
        new String[] {"-inMemory", "-disableTelemetry"});
    Field field = DynamoDBProxyServer.class.getDeclaredField("server");
    field.setAccessible(true);
    ServerConnector connector = (ServerConnector) ((Server) field.get(local)).getConnectors()[0];
    connector.setHost("127.0.0.1");
    connector.setPort(0);
    local.safeStart();
    System.out.println("listening on " + connector.getLocalPort());
    while (System.in.read() >= 0) {
      // Nobody writes there: its end is the sign.
    }
    local.stop();
    System.exit(0); // SQLite has threads that would stay
  }
}
