package penstock;

import java.io.IOException;
import java.io.UncheckedIOException;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;

/**
 * Spark's own checkpoint files, except that a run whose successor has started writes no log entry any more.
 *
 * <p>Why here: Spark offers no other synchronous hook before it writes offsets/N and commits/N. Listeners
 * are told later, on another thread. Set as spark.sql.streaming.checkpointFileManagerClass; Spark makes it
 * by the constructor (Path, Configuration), and the configuration holds the session's settings as they
 * were when the query started.
 *
 * <ul>
 *   <li>spark.penstock.fence.successor: the file that the next run creates to take over.
 *   <li>spark.penstock.fence.checkpoint: only this checkpoint is fenced; without it, every one.
 * </ul>
 *
 * <p>Compiled by Janino, which has no generics, lambdas or annotations worth using: plain Java only.
 */
public class FencedCheckpoints extends FileContextBasedCheckpointFileManager {
  private final Configuration conf;

  public FencedCheckpoints(Path path, Configuration conf) {
    super(path, conf);
    this.conf = conf;
  }

  public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {
    check(path);
    return super.createAtomic(path, overwrite);
  }

  /**
   * The temporary file gets its name here. A driver that was frozen while it wrote the file wakes up after
   * the first check, so there is a second one as late as can be.
   */
  public void renameTempFile(Path from, Path to, boolean overwrite) {
    try {
      check(to);
    } catch (RuntimeException fenced) {
      delete(from);
      throw fenced;
    }
    super.renameTempFile(from, to, overwrite);
  }

  private void check(Path path) {
    String successor = conf.get("spark.penstock.fence.successor");
    if (successor == null || !isLogEntry(path)) {
      return;
    }
    boolean taken;
    try {
      Path file = new Path(successor);
      taken = file.getFileSystem(conf).exists(file);
    } catch (IOException error) {
      // Not knowing is no leave to write: the query fails, and a restart replays the batch.
      throw new UncheckedIOException("PENSTOCK_FENCE_UNKNOWN " + successor, error);
    }
    if (taken) {
      throw new IllegalStateException("PENSTOCK_FENCED " + successor + " exists; " + path + " was not written");
    }
  }

  private boolean isLogEntry(Path path) {
    Path folder = path.getParent();
    if (folder == null || folder.getParent() == null) {
      return false;
    }
    if (!folder.getName().equals("offsets") && !folder.getName().equals("commits")) {
      return false;
    }
    String checkpoint = conf.get("spark.penstock.fence.checkpoint");
    return checkpoint == null || qualified(new Path(checkpoint)).equals(qualified(folder.getParent()));
  }

  private Path qualified(Path path) {
    try {
      return path.getFileSystem(conf).makeQualified(path);
    } catch (IOException error) {
      throw new UncheckedIOException("PENSTOCK_FENCE_UNKNOWN " + path, error);
    }
  }
}
