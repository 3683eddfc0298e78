#include "storage/spill/spill_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// So soon a move that is to stop is cancelled. It ends when the disk has
// answered for what it had begun, however late: until then it has the move's
// memory.
constexpr absl::Duration kAskEvery = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::unique_ptr<SpillQueue>> SpillQueue::Open(
    SpillFile& file, IoEngine& engine, const SpillQueueOptions& options) {
  CHECK_EQ(engine.in_flight(), 0);
  CHECK(options.piece_bytes > 0 && options.piece_bytes % kIoAlignment == 0);
  ASSIGN_OR_RETURN(const IoFile opened,
                   engine.Open(file.path(), IoMode::kDirect));
  return std::unique_ptr<SpillQueue>(
      new SpillQueue(file, engine, opened, options));
}

SpillQueue::SpillQueue(SpillFile& spill, IoEngine& engine, IoFile file,
                       const SpillQueueOptions& options)
    : spill_(spill),
      engine_(engine),
      file_(file),
      options_(options),
      requests_(engine.depth()) {
  for (size_t i = requests_.size(); i-- > 0;) free_.push_back(i);
}

SpillQueue::~SpillQueue() {
  Cancel();
  Drain();
  engine_.Close(file_).IgnoreError();
}

absl::Status SpillQueue::Start(IoKind kind, SpillRange range, char* data,
                               Done done) {
  RETURN_IF_ERROR(spill_.CheckRange(range, data));
  if (kind == IoKind::kRead) RETURN_IF_ERROR(spill_.CheckReadable(range));
  if (in_flight() == kMovesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        spill_.path(), ": ", kMovesMax, " moves in flight; poll first"));
  }
  if (kind == IoKind::kWrite) spill_.ExpectNothing(range);
  moves_.push_back(
      {.kind = kind, .range = range, .data = data, .done = std::move(done)});
  to_start_.push_back(&moves_.back());
  StartPieces();
  return absl::OkStatus();
}

absl::Status SpillQueue::Now(IoKind kind, SpillRange range, char* data) {
  absl::Status ended = absl::UnknownError("");
  bool over = false;
  RETURN_IF_ERROR(Start(kind, range, data, [&](const absl::Status& status) {
    ended = status;
    over = true;
  }));
  absl::Status stopped;
  while (!over) {
    Poll(kAskEvery);
    if (over || options_.stopped == nullptr || !stopped.ok()) continue;
    stopped = options_.stopped();
    if (!stopped.ok()) Cancel();
  }
  return stopped.ok() ? ended : stopped;
}

void SpillQueue::StartPieces() {
  std::vector<IoRequest> batch;
  while (!free_.empty() && !to_start_.empty()) {
    Move& move = *to_start_.front();
    const size_t place = free_.back();
    free_.pop_back();
    Request& request = requests_[place];
    request = {&move,
               {.offset = move.range.offset + move.started,
                .bytes = std::min(options_.piece_bytes,
                                  move.range.bytes - move.started)}};
    move.started += request.range.bytes;
    ++move.under_way;
    if (move.started == move.range.bytes) to_start_.pop_front();
    batch.push_back({.kind = move.kind,
                     .file = file_,
                     .offset = kSpillHeaderBytes + request.range.offset,
                     .data = DataOf(request),
                     .bytes = request.range.bytes,
                     .tag = place});
  }
  CHECK_OK(engine_.Submit(batch));
  for (const IoRequest& started : batch) {
    if (started.kind == IoKind::kRead) continue;
    spill_.Expect(requests_[started.tag].range, started.data);
  }
}

void SpillQueue::Poll(absl::Duration timeout) {
  struct Ended {
    Request request;
    absl::Status status;
  };
  std::vector<Ended> ended;
  for (IoCompletion& done : engine_.Poll(timeout)) {
    ended.push_back({requests_[done.tag], std::move(done.status)});
    free_.push_back(done.tag);
  }
  StartPieces();  // the disk has work while checksums are computed
  for (Ended& e : ended) EndPiece(e.request, std::move(e.status));
  EndMoves();
}

void SpillQueue::EndPiece(const Request& request, absl::Status status) {
  Move& move = *request.move;
  --move.under_way;
  if (status.ok() && move.kind == IoKind::kRead) {
    status = spill_.Verify(request.range, DataOf(request));
  }
  if (absl::IsOutOfRange(status)) {
    status = absl::DataLossError(absl::StrCat(
        status.message(), ": somebody cut it; see who writes there"));
  }
  if (status.ok()) return;
  move.status.Update(status);
  const auto it = std::find(to_start_.begin(), to_start_.end(), &move);
  if (it != to_start_.end()) to_start_.erase(it);  // the rest need not start
}

void SpillQueue::EndMoves() {
  std::list<Move> ended;
  for (auto it = moves_.begin(); it != moves_.end();) {
    const auto move = it++;
    const bool all = move->started == move->range.bytes;
    if (move->under_way > 0 || (move->status.ok() && !all)) continue;
    ended.splice(ended.end(), moves_, move);
  }
  for (const Move& move : ended) {
    if (!move.status.ok() && move.kind == IoKind::kWrite) {
      spill_.ExpectNothing(move.range);
    }
    move.done(move.status);
  }
}

void SpillQueue::Drain() {
  while (in_flight() > 0) Poll(absl::InfiniteDuration());
}

void SpillQueue::Cancel() {
  for (Move* move : std::exchange(to_start_, {})) {
    move->status.Update(absl::CancelledError(
        absl::StrCat(spill_.path(), ": the move of ", move->range.bytes,
                     " bytes was cancelled")));
  }
  engine_.Cancel();
}

}  // namespace troupe
