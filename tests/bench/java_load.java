import java.util.Random;

/*
 * Requests and a cache, as in a server: many blocks that live for milliseconds,
 * and a cache whose entries are replaced at random. The heap fills, is
 * collected, and fills again. Ends by itself after SECONDS.
 *
 *   java java_load.java CACHE_MEBIBYTES REQUESTS_PER_SECOND SECONDS
 */
public class java_load {
  static final int ENTRY_BYTES = 16 << 10, BATCHES_PER_SECOND = 20;

  public static void main(String[] arguments) throws InterruptedException {
    int entries = (Integer.parseInt(arguments[0]) << 20) / ENTRY_BYTES;
    int batch = Integer.parseInt(arguments[1]) / BATCHES_PER_SECOND;
    long end = System.nanoTime() + Long.parseLong(arguments[2]) * 1000000000L;
    byte[][] cache = new byte[entries][];
    Random random = new Random(1);
    long sum = 0;

    for (int i = 0; i < entries; i++)
      cache[i] = new byte[ENTRY_BYTES];
    while (System.nanoTime() < end) {
      for (int i = 0; i < batch; i++) {
        byte[] request = new byte[ENTRY_BYTES << random.nextInt(4)];

        request[request.length - 1] = (byte) i;
        sum += request[request.length - 1];
        cache[random.nextInt(entries)] = new byte[ENTRY_BYTES];
      }
      Thread.sleep(1000 / BATCHES_PER_SECOND);
    }
    System.out.println(sum);
  }
}
