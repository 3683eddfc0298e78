#include "storage/spill/spill_file.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "storage/engine/posix_file.h"
#include "storage/spill/reserved_file.h"
#include "storage/spill/stale_spill_files.h"

namespace troupe {
namespace {

uint64_t End(SpillRange range) { return range.offset + range.bytes; }

}  // namespace

absl::StatusOr<std::unique_ptr<SpillFile>> SpillFile::Create(
    IoEngine& engine, const SpillFileOptions& options) {
  CHECK_EQ(engine.in_flight(), 0);
  CHECK(options.piece_bytes > 0 && options.piece_bytes % kIoAlignment == 0);
  if (options.bytes == 0 || options.bytes % kIoAlignment != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.directory, ": a tier of ", options.bytes,
                     " bytes; it has to be a multiple of ", kIoAlignment));
  }
  RETURN_IF_ERROR(RemoveStaleSpillFiles(options.directory).status());
  std::string header = SpillHeader(options.owner);
  ASSIGN_OR_RETURN(ReservedFile made,
                   ReserveFile(options.directory, header,
                               kSpillHeaderBytes + options.bytes));
  ASSIGN_OR_RETURN(const IoFile file, engine.Open(made.path, IoMode::kDirect));
  return std::unique_ptr<SpillFile>(
      new SpillFile(engine, options, std::move(header), std::move(made.lock),
                    std::move(made.path), file));
}

SpillFile::SpillFile(IoEngine& engine, const SpillFileOptions& options,
                     std::string header, FileLock lock, std::string path,
                     IoFile file)
    : engine_(engine),
      options_(options),
      header_(std::move(header)),
      path_(std::move(path)),
      file_(file),
      lock_(std::move(lock)),
      requests_(engine.depth()) {
  for (size_t i = requests_.size(); i-- > 0;) free_.push_back(i);
}

SpillFile::~SpillFile() {
  Cancel();
  Drain();
  engine_.Close(file_).IgnoreError();
}

absl::Status SpillFile::CheckRange(SpillRange range, const char* data) const {
  const bool aligned = range.offset % kIoAlignment == 0 &&
                       range.bytes % kIoAlignment == 0 &&
                       reinterpret_cast<uintptr_t>(data) % kIoAlignment == 0;
  const bool inside = range.bytes > 0 && range.bytes <= options_.bytes &&
                      range.offset <= options_.bytes - range.bytes;
  if (!aligned || !inside) {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": ", range.bytes, " bytes at ", range.offset,
        aligned ? " do not lie in a tier of "
                : ", or their memory, are not aligned to 4096, in a tier of ",
        options_.bytes));
  }
  if (in_flight() == kMovesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path_, ": ", kMovesMax, " moves in flight; poll first"));
  }
  return absl::OkStatus();
}

absl::Status SpillFile::Write(SpillRange range, const char* data, Done done) {
  RETURN_IF_ERROR(CheckRange(range, data));
  ForgetSums(range);
  Move move = {.kind = IoKind::kWrite,
               .data = const_cast<char*>(data),
               .done = std::move(done)};
  for (uint64_t at = 0; at < range.bytes; at += options_.piece_bytes) {
    move.pieces.push_back({{range.offset + at,
                            std::min(options_.piece_bytes, range.bytes - at)}});
  }
  Begin(std::move(move));
  return absl::OkStatus();
}

absl::Status SpillFile::Read(SpillRange range, char* data, Done done) {
  RETURN_IF_ERROR(CheckRange(range, data));
  Move move = {.kind = IoKind::kRead, .data = data, .done = std::move(done)};
  ASSIGN_OR_RETURN(move.pieces, WrittenPieces(range));
  Begin(std::move(move));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SpillFile::Piece>> SpillFile::WrittenPieces(
    SpillRange range) const {
  std::vector<Piece> pieces;
  uint64_t at = range.offset;
  for (auto sum = sums_.find(at);
       sum != sums_.end() && sum->first == at && at < End(range); ++sum) {
    pieces.push_back({{at, sum->second.bytes}, sum->second.crc32c});
    at += sum->second.bytes;
  }
  if (at == End(range)) return pieces;
  return absl::FailedPreconditionError(
      absl::StrCat(path_, ": ", range.bytes, " bytes at ", range.offset,
                   " are to be read, but were not written so: see ", at));
}

void SpillFile::ForgetSums(SpillRange range) {
  auto sum = sums_.lower_bound(range.offset);
  if (sum != sums_.begin()) {
    const auto before = std::prev(sum);
    if (before->first + before->second.bytes > range.offset) sum = before;
  }
  while (sum != sums_.end() && sum->first < End(range)) {
    sum = sums_.erase(sum);
  }
}

void SpillFile::Begin(Move move) {
  moves_.push_back(std::move(move));
  to_start_.push_back(&moves_.back());
  StartPieces();
}

char* SpillFile::DataOf(const Move& move, const Piece& piece) const {
  return move.data + (piece.range.offset - move.pieces[0].range.offset);
}

void SpillFile::StartPieces() {
  std::vector<IoRequest> batch;
  while (!free_.empty() && !to_start_.empty()) {
    Move& move = *to_start_.front();
    const size_t place = free_.back();
    free_.pop_back();
    requests_[place] = {&move, move.started};
    const Piece& piece = move.pieces[move.started++];
    ++move.under_way;
    if (move.started == move.pieces.size()) to_start_.pop_front();
    batch.push_back({.kind = move.kind,
                     .file = file_,
                     .offset = kSpillHeaderBytes + piece.range.offset,
                     .data = DataOf(move, piece),
                     .bytes = piece.range.bytes,
                     .tag = place});
  }
  CHECK_OK(engine_.Submit(batch));
  for (const IoRequest& request : batch) {
    if (request.kind == IoKind::kRead) continue;
    const Request& of = requests_[request.tag];
    of.move->pieces[of.piece].crc32c = Crc32c({request.data, request.bytes});
  }
}

void SpillFile::Poll(absl::Duration timeout) {
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
  for (Ended& e : ended) {
    Move& move = *e.request.move;
    EndPiece(move, move.pieces[e.request.piece], std::move(e.status));
  }
  EndMoves();
}

void SpillFile::EndPiece(Move& move, const Piece& piece, absl::Status status) {
  --move.under_way;
  if (status.ok() && move.kind == IoKind::kRead) status = Verify(move, piece);
  if (status.ok() && move.kind == IoKind::kWrite) {
    sums_[piece.range.offset] = {piece.range.bytes, piece.crc32c};
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

void SpillFile::EndMoves() {
  std::list<Move> ended;
  for (auto it = moves_.begin(); it != moves_.end();) {
    const auto move = it++;
    const bool all = move->started == move->pieces.size();
    if (move->under_way > 0 || (move->status.ok() && !all)) continue;
    ended.splice(ended.end(), moves_, move);
  }
  for (const Move& move : ended) {
    if (!move.status.ok() && move.kind == IoKind::kWrite) {
      ForgetSums(
          {move.pieces.front().range.offset,
           End(move.pieces.back().range) - move.pieces.front().range.offset});
    }
    move.done(move.status);
  }
}

void SpillFile::Drain() {
  while (in_flight() > 0) Poll(absl::InfiniteDuration());
}

void SpillFile::Cancel() {
  for (Move* move : std::exchange(to_start_, {})) {
    move->status.Update(absl::CancelledError(
        absl::StrCat(path_, ": the move of ", move->pieces.size(),
                     " pieces was cancelled")));
  }
  engine_.Cancel();
}

absl::Status SpillFile::Verify(const Move& move, const Piece& piece) const {
  const SpillRange& range = piece.range;
  const uint32_t crc32c = Crc32c({DataOf(move, piece), range.bytes});
  if (crc32c == piece.crc32c) return absl::OkStatus();
  std::string text = absl::StrFormat(
      "%s: bytes %d to %d: CRC-32C is %08x, of what was written it is %08x: "
      "somebody changed the file, or the disk lost a write; see who writes "
      "there, and the kernel's log",
      path_, kSpillHeaderBytes + range.offset,
      kSpillHeaderBytes + range.offset + range.bytes, crc32c, piece.crc32c);
  const absl::StatusOr<PosixFile> file =
      PosixFile::Open(path_, IoMode::kReadCached);
  std::string begin(header_.size(), '\0');
  if (file.ok() && file->ReadAt(0, begin.size(), begin.data()).ok() &&
      begin != header_) {
    absl::StrAppend(&text, "; it now begins with: ", OneLine(begin, 160));
  }
  return absl::DataLossError(text);
}

}  // namespace troupe
