import java.lang.reflect.Field;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import software.amazon.dynamodb.services.local.main.ServerRunner;
import software.amazon.dynamodb.services.local.server.DynamoDBProxyServer;

/**
 * Runs DynamoDB Local on 127.0.0.1. Its own main class listens on every address of the machine, and
 * has no option for that, so the address is set on its HTTP server before it starts.
 */
public final class WeirLocal {
  private WeirLocal() {}

  /** Takes the arguments of DynamoDB Local. */
  public static void main(String[] args) throws Exception {
    DynamoDBProxyServer runner = ServerRunner.createServerFromCommandLineArgs(args);
    Field field = DynamoDBProxyServer.class.getDeclaredField("server");
    field.setAccessible(true);
    for (Connector connector : ((Server) field.get(runner)).getConnectors()) {
      ((ServerConnector) connector).setHost("127.0.0.1");
    }
    runner.start();
    runner.join();
  }
}
