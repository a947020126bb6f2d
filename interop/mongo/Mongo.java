import de.bwaldvogel.mongo.MongoCollection;
import de.bwaldvogel.mongo.MongoDatabase;
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.ArrayFilters;
import de.bwaldvogel.mongo.backend.CollectionOptions;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.backend.h2.H2Collection;
import de.bwaldvogel.mongo.backend.h2.H2Database;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.oplog.Oplog;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.h2.mvstore.MVStore;

/**
 * Runs mongo-java-server over a file: {@code Mongo FILE PORT}. It listens on the loopback, prints
 * the port (0: a free one), and ends with its standard input.
 *
 * <p>The backend by itself saves its file once a second, and possibly in the middle of a change: a
 * kill loses answered writes, or leaves a document outside its index. Here each change of a document
 * is in the file before its answer. So a kill between two statements of a bulk keeps the first, as a
 * real server with a journal does. A drop waits for the next change.
 */
public final class Mongo extends H2Backend {
  // Taken before the monitors of databases and collections. It is static since the constructor of
  // the superclass opens the databases of the file.
  private static final ReentrantLock changing = new ReentrantLock();

  private Mongo(MVStore store) {
    super(store);
  }

  public static void main(String[] args) throws Exception {
    MVStore store = new MVStore.Builder().fileName(args[0]).autoCommitDisabled().open();
    store.setRetentionTime(0); // a kill keeps the order of writes: old pages are free at once
    MongoServer server = new MongoServer(new Mongo(store));
    server.bind("127.0.0.1", Integer.parseInt(args[1]));
    System.out.println("listening on " + server.getLocalAddress().getPort());
    while (System.in.read() >= 0) {
      // Its end is the sign.
    }
    server.shutdownNow();
    System.exit(0);
  }

  /** stored makes a change, and saves the file with it. */
  private <T> T stored(Supplier<T> change) {
    changing.lock();
    try {
      return change.get();
    } finally {
      if (changing.getHoldCount() == 1) { // a change inside another one is saved with that
        getMvStore().commit();
      }
      changing.unlock();
    }
  }

  @Override
  protected MongoDatabase openOrCreateDatabase(String name) {
    return stored(() -> new Database(name));
  }

  private final class Database extends H2Database {
    Database(String name) {
      super(name, getMvStore(), getCursorRegistry());
    }

    @Override
    protected MongoCollection<Object> openOrCreateCollection(
        String name, CollectionOptions options) {
      return new Collection(this, name, options);
    }

    @Override
    protected MongoCollection<Object> resolveOrCreateCollection(String name) {
      return stored(() -> super.resolveOrCreateCollection(name));
    }

    @Override
    public MongoCollection<Object> createCollectionOrThrowIfExists(
        String name, CollectionOptions options) {
      return stored(() -> super.createCollectionOrThrowIfExists(name, options));
    }

    @Override
    protected void addIndex(Document description) {
      stored(() -> {
        super.addIndex(description);
        return null;
      });
    }
  }

  private final class Collection extends H2Collection {
    Collection(Database database, String name, CollectionOptions options) {
      super(database, name, options,
          getMvStore().openMap("databases." + database.getDatabaseName() + "." + name),
          getMvStore().openMap("meta." + database.getDatabaseName() + "." + name),
          getCursorRegistry());
    }

    @Override
    public List<Document> insertDocuments(List<Document> documents, boolean ordered) {
      List<Document> errors = new ArrayList<>();
      for (int i = 0; i < documents.size() && !(ordered && !errors.isEmpty()); i++) {
        List<Document> one = documents.subList(i, i + 1);
        for (Document error : stored(() -> super.insertDocuments(one, ordered))) {
          error.put("index", i);
          errors.add(error);
        }
      }
      return errors;
    }

    @Override
    public Document updateDocuments(Document selector, Document update, ArrayFilters filters,
        boolean multi, boolean upsert, Oplog oplog) {
      return stored(
          () -> super.updateDocuments(selector, update, filters, multi, upsert, oplog));
    }

    @Override
    public int deleteDocuments(Document selector, int limit, Oplog oplog) {
      return stored(() -> super.deleteDocuments(selector, limit, oplog));
    }

    @Override
    public Document findAndModify(Document query) {
      return stored(() -> super.findAndModify(query));
    }
  }
}
