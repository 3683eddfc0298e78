// The NVMe tier of one rank: a file whose ranges are the addresses of the tier,
// moved straight between them and memory.
//
//   ASSIGN_OR_RETURN(auto spill, SpillFile::Create(*engine, {
//       .directory = "/nvme", .bytes = 8 << 30, .owner = {"host7", 3, 0}}));
//   RETURN_IF_ERROR(spill->Write({.offset = 0, .bytes = n}, moments,
//                                [&](const absl::Status& s) { ... }));
//   while (spill->in_flight() > 0) spill->Poll(absl::InfiniteDuration());
//
// The room is taken when the file is made, so that a step does not meet a full
// disk. Nothing goes through the page cache: what rests here costs no memory
// but 64 bytes of each piece, a MiB, for its CRC-32C. Each piece is checked
// when it is read: a file that somebody changed, and a disk that lost a write,
// are named, never trained with. The checksum of one piece is computed while
// the disk moves others.
//
// The file is locked while it is used and removed at its end. What a process
// that was killed leaves is removed by whoever next makes one in the directory
// (stale_spill_files.h). Its content is worth nothing to anybody else:
// checkpoints are what is durable.
//
// Thread rule: one thread at a time, that of the engine. Callbacks run in Poll.
#ifndef TROUPE_STORAGE_SPILL_SPILL_FILE_H_
#define TROUPE_STORAGE_SPILL_SPILL_FILE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/disk/file_lock.h"
#include "storage/engine/engine.h"
#include "storage/spill/spill_header.h"

namespace troupe {

// Of the tier, from 0; the file has its header before. Multiples of
// kIoAlignment.
struct SpillRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct SpillFileOptions {
  std::string directory;  // must be there
  uint64_t bytes = 0;     // of the tier, a multiple of kIoAlignment
  SpillOwner owner;
  uint64_t piece_bytes = 1 << 20;  // of a request, the same
};

class SpillFile {
 public:
  // How a move ended: OK when all bytes are where they should be.
  using Done = std::function<void(const absl::Status&)>;

  // Borrows the engine, which must be idle, and is the file's while a move is
  // in flight. ResourceExhausted, with both figures, where the file system has
  // less room; InvalidArgument where it does no O_DIRECT; errors name the
  // directory or the file.
  static absl::StatusOr<std::unique_ptr<SpillFile>> Create(
      IoEngine& engine, const SpillFileOptions& options);
  // Cancels what is in flight; its callbacks run. Then the file is gone.
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return options_.bytes; }

  // Start a move of all of a range. `data` is aligned to kIoAlignment and the
  // engine's until `done`; it costs least where the engine knows it
  // (IoEngine::RegisterMemory). Two moves in flight must not overlap where one
  // writes. InvalidArgument for a range that is not in the tier or not aligned;
  // ResourceExhausted past kMovesMax in flight. Then `done` is not called.
  //
  // A range is read as it was written: it begins where a write began, or a
  // piece of one, and ends so; else FailedPrecondition. Of a write that failed
  // nothing can be read.
  //
  // `done` is told the engine's errors, and DataLoss where a piece is not what
  // was written.
  absl::Status Write(SpillRange range, const char* data, Done done);
  absl::Status Read(SpillRange range, char* data, Done done);

  // Moves that have not ended.
  int in_flight() const { return static_cast<int>(moves_.size()); }
  static constexpr int kMovesMax = 1024;

  // Waits until a request completes, or the timeout; then calls back for the
  // moves that have ended.
  void Poll(absl::Duration timeout);
  // Polls until no move is in flight.
  void Drain();
  // Moves in flight end soon, as Cancelled where they are not done.
  void Cancel();

 private:
  struct Piece {
    SpillRange range;
    uint32_t crc32c = 0;  // of a read: what it should be
  };
  struct Move {
    IoKind kind = IoKind::kRead;
    char* data = nullptr;
    std::vector<Piece> pieces;
    size_t started = 0;  // pieces
    int under_way = 0;   // pieces that have started and not ended
    absl::Status status;
    Done done;
  };
  // A request that the engine has; its tag is its place in requests_.
  struct Request {
    Move* move = nullptr;
    size_t piece = 0;
  };
  struct Sum {
    uint64_t bytes = 0;
    uint32_t crc32c = 0;
  };

  SpillFile(IoEngine& engine, const SpillFileOptions& options,
            std::string header, FileLock lock, std::string path, IoFile file);

  absl::Status CheckRange(SpillRange range, const char* data) const;
  absl::StatusOr<std::vector<Piece>> WrittenPieces(SpillRange range) const;
  void ForgetSums(SpillRange range);
  void Begin(Move move);
  // Hands pieces to the engine as long as it has room.
  void StartPieces();
  void EndPiece(Move& move, const Piece& piece, absl::Status status);
  void EndMoves();
  char* DataOf(const Move& move, const Piece& piece) const;
  absl::Status Verify(const Move& move, const Piece& piece) const;

  IoEngine& engine_;
  const SpillFileOptions options_;
  const std::string header_;
  const std::string path_;
  const IoFile file_;
  const FileLock lock_;           // removes the file
  std::map<uint64_t, Sum> sums_;  // of pieces that were written, by offset
  std::list<Move> moves_;         // in flight, and ended but not told
  std::deque<Move*> to_start_;    // those with pieces that have not started
  std::vector<Request> requests_;
  std::vector<size_t> free_;  // places in requests_
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_SPILL_SPILL_FILE_H_
