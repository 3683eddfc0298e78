// One thread's moves between a spill file and memory, straight from one to the
// other, by an engine of its own:
//
//   ASSIGN_OR_RETURN(auto queue, SpillQueue::Open(*spill, *engine));
//   RETURN_IF_ERROR(queue->Start(IoKind::kWrite, {.offset = 0, .bytes = n},
//                                moments, [&](const absl::Status& s) { ... }));
//   while (queue->in_flight() > 0) queue->Poll(absl::InfiniteDuration());
//
// The checksum of one piece, a MiB, is computed while the disk moves others.
//
// Thread rule: that of the engine. Callbacks run in Poll.
#ifndef TROUPE_STORAGE_SPILL_SPILL_QUEUE_H_
#define TROUPE_STORAGE_SPILL_SPILL_QUEUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/engine/engine.h"
#include "storage/spill/spill_file.h"

namespace troupe {

struct SpillQueueOptions {
  uint64_t piece_bytes = 1 << 20;  // of a request, a multiple of kIoAlignment
  // Asked by Now each while; an error, which it returns, cancels the move. What
  // the disk has begun of it is waited for.
  std::function<absl::Status()> stopped = nullptr;
};

class SpillQueue {
 public:
  // How a move ended: OK when all bytes are where they should be.
  using Done = std::function<void(const absl::Status&)>;

  // Borrows both; the engine must be idle, and is the queue's while a move is
  // in flight. InvalidArgument where the file system does no O_DIRECT.
  static absl::StatusOr<std::unique_ptr<SpillQueue>> Open(
      SpillFile& file, IoEngine& engine, const SpillQueueOptions& options = {});
  // Cancels what is in flight; its callbacks run.
  ~SpillQueue();
  SpillQueue(const SpillQueue&) = delete;
  SpillQueue& operator=(const SpillQueue&) = delete;

  // Starts a move of all of a range. `data` is aligned to kIoAlignment and the
  // engine's until `done`; it costs least where the engine knows it
  // (IoEngine::RegisterMemory). Two moves in flight, of any queues, must not
  // overlap where one writes. InvalidArgument for a range that is not in the
  // tier or not aligned; FailedPrecondition to read what a failed write left;
  // ResourceExhausted past kMovesMax in flight. Then `done` is not called.
  //
  // `done` is told the engine's errors, and DataLoss where a piece is not what
  // was written.
  absl::Status Start(IoKind kind, SpillRange range, char* data, Done done);

  // Moves a range and returns when that has ended.
  absl::Status Now(IoKind kind, SpillRange range, char* data);

  const SpillFile& file() const { return spill_; }

  // Moves that have not ended.
  int in_flight() const { return static_cast<int>(moves_.size()); }
  static constexpr int kMovesMax = 1024;

  // Waits until a request completes, or the timeout; then calls back for the
  // moves that have ended.
  void Poll(absl::Duration timeout);
  // Polls until no move is in flight.
  void Drain();
  // Of moves in flight, what the disk has not begun is left out: they end, as
  // Cancelled where they are not done, when it has answered for the rest.
  void Cancel();

 private:
  struct Move {
    IoKind kind = IoKind::kRead;
    SpillRange range;
    char* data = nullptr;
    uint64_t started = 0;  // bytes
    int under_way = 0;     // pieces that have started and not ended
    absl::Status status;
    Done done;
  };
  // A request that the engine has; its tag is its place in requests_.
  struct Request {
    Move* move = nullptr;
    SpillRange range;
  };

  SpillQueue(SpillFile& spill, IoEngine& engine, IoFile file,
             const SpillQueueOptions& options);

  // Hands pieces to the engine as long as it has room.
  void StartPieces();
  void EndPiece(const Request& request, absl::Status status);
  void EndMoves();
  static char* DataOf(const Request& request) {
    return request.move->data +
           (request.range.offset - request.move->range.offset);
  }

  SpillFile& spill_;
  IoEngine& engine_;
  const IoFile file_;
  const SpillQueueOptions options_;
  std::list<Move> moves_;       // in flight, and ended but not told
  std::deque<Move*> to_start_;  // those with pieces that have not started
  std::vector<Request> requests_;
  std::vector<size_t> free_;  // places in requests_
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_SPILL_SPILL_QUEUE_H_
