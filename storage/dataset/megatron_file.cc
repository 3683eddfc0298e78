#include "storage/dataset/megatron_file.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/engine/little_endian.h"

namespace troupe {
namespace {

constexpr absl::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kMegatronVersionAt = 9;
constexpr uint64_t kTypeAt = 17;
constexpr uint64_t kSequenceCountAt = 18;
constexpr uint64_t kDocumentCountAt = 26;
constexpr uint64_t kMegatronHeaderBytes = 34;
constexpr size_t kPieceBytes = size_t{1} << 20;

struct TypeRow {
  const char* name;
  TokenType type;  // of no bytes: no integer
};
// By Megatron's code, from 1.
constexpr TypeRow kTypes[] = {
    {"uint8", {1, false}},  {"int8", {1, true}},    {"int16", {2, true}},
    {"int32", {4, true}},   {"int64", {8, true}},   {"float64", {0, true}},
    {"float32", {0, true}}, {"uint16", {2, false}},
};

// What the two files have in common.
std::string Prefix(absl::string_view path) {
  if (!absl::ConsumeSuffix(&path, ".idx")) absl::ConsumeSuffix(&path, ".bin");
  return std::string(path);
}

// Numbers that lie one after the other, from front to back. An index may have
// gigabytes of them, on every rank: little of it is in memory at a time.
template <typename T>
class Numbers {
 public:
  // `count` of them from byte `at` on, which must be there. Borrows the file.
  Numbers(const DataFile& file, uint64_t at, uint64_t count)
      : file_(file), at_(at), left_(count) {}

  // Call `count` times at most.
  absl::Status Next(T& number) {
    if (next_ == piece_.size()) RETURN_IF_ERROR(ReadPiece());
    number = LoadLittleEndian<T>(piece_.data() + next_);
    next_ += sizeof(T);
    return absl::OkStatus();
  }

 private:
  absl::Status ReadPiece() {
    const uint64_t count = std::min<uint64_t>(left_, kPieceBytes / sizeof(T));
    piece_.resize(count * sizeof(T));
    next_ = 0;
    RETURN_IF_ERROR(file_.Read(at_, piece_.size(), piece_.data()));
    at_ += piece_.size();
    left_ -= count;
    return absl::OkStatus();
  }

  const DataFile& file_;
  uint64_t at_;
  uint64_t left_;
  std::string piece_;
  size_t next_ = 0;
};

// The parts of a checked .idx.
class Index {
 public:
  static absl::StatusOr<Index> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const TypeRow& type() const { return *type_; }
  uint64_t sequences() const { return sequences_; }
  uint64_t documents() const { return documents_ - 1; }
  uint64_t PointerAt(uint64_t sequence) const {
    return kMegatronHeaderBytes + 4 * sequences_ + 8 * sequence;
  }
  Numbers<uint32_t> Lengths() const {
    return {file_, kMegatronHeaderBytes, sequences_};
  }
  Numbers<uint64_t> Pointers() const {
    return {file_, PointerAt(0), sequences_};
  }
  absl::Status Damaged(uint64_t offset, absl::string_view what) const {
    return absl::DataLossError(
        absl::StrCat(path(), ": offset ", offset, ": ", what));
  }

 private:
  explicit Index(DataFile file) : file_(std::move(file)) {}
  absl::Status CheckHeader();
  absl::Status CheckSize() const;
  absl::Status CheckDocuments() const;

  DataFile file_;
  const TypeRow* type_ = nullptr;
  uint64_t sequences_ = 0;
  uint64_t documents_ = 0;  // entries of the document index
};

absl::StatusOr<Index> Index::Open(const std::string& path) {
  ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  Index index(std::move(file));
  RETURN_IF_ERROR(index.CheckHeader());
  RETURN_IF_ERROR(index.CheckSize());
  RETURN_IF_ERROR(index.CheckDocuments());
  return index;
}

absl::Status Index::CheckHeader() {
  if (file_.size() < kMegatronHeaderBytes) {
    return Damaged(file_.size(),
                   absl::StrCat("the file ends inside its ",
                                kMegatronHeaderBytes, " byte header"));
  }
  char bytes[kMegatronHeaderBytes];
  RETURN_IF_ERROR(file_.Read(0, kMegatronHeaderBytes, bytes));
  const uint64_t version =
      LoadLittleEndian<uint64_t>(bytes + kMegatronVersionAt);
  if (version != 1) {
    return Damaged(kMegatronVersionAt,
                   absl::StrCat("version ", version, "; this program reads 1"));
  }
  const uint8_t code = static_cast<uint8_t>(bytes[kTypeAt]);
  if (code < 1 || code > std::size(kTypes)) {
    return Damaged(kTypeAt, absl::StrCat("unknown type ", code, " of ids"));
  }
  type_ = &kTypes[code - 1];
  if (type_->type.bytes == 0) {
    return absl::UnimplementedError(absl::StrCat(path(), ": offset ", kTypeAt,
                                                 ": ids of type ", type_->name,
                                                 "; tokens are integers"));
  }
  sequences_ = LoadLittleEndian<uint64_t>(bytes + kSequenceCountAt);
  documents_ = LoadLittleEndian<uint64_t>(bytes + kDocumentCountAt);
  return absl::OkStatus();
}

absl::Status Index::CheckSize() const {
  const uint64_t bytes = file_.size();
  // First that no product overflows.
  if (sequences_ > bytes || documents_ > bytes) {
    return Damaged(kSequenceCountAt,
                   absl::StrCat(sequences_, " sequences and ", documents_,
                                " documents do not fit into ", bytes,
                                " bytes: it is truncated or damaged"));
  }
  const uint64_t want = kMegatronHeaderBytes + 12 * sequences_ + 8 * documents_;
  if (bytes == want + sequences_ && sequences_ > 0) {
    return absl::UnimplementedError(
        absl::StrCat(path(), ": offset ", want,
                     ": has a mode for each sequence: multimodal data, "
                     "which this program does not train on"));
  }
  if (bytes == want) return absl::OkStatus();
  return Damaged(
      std::min(bytes, want),
      absl::StrCat("the file has ", bytes, " bytes, its header says ", want,
                   bytes < want ? ": it is truncated"
                                : ": something follows the document index"));
}

absl::Status Index::CheckDocuments() const {
  const uint64_t at = kMegatronHeaderBytes + 12 * sequences_;
  if (documents_ == 0) return Damaged(kDocumentCountAt, "no document index");
  Numbers<uint64_t> starts(file_, at, documents_);
  uint64_t before = 0;
  for (uint64_t i = 0; i < documents_; ++i) {
    uint64_t sequence;
    RETURN_IF_ERROR(starts.Next(sequence));
    if (sequence < before || sequence > sequences_) {
      return Damaged(at + 8 * i,
                     absl::StrCat("document ", i, " begins at sequence ",
                                  static_cast<int64_t>(sequence), " of ",
                                  sequences_, ", after one at ", before));
    }
    before = sequence;
  }
  return absl::OkStatus();
}

// Checks each sequence against the .bin; neighbours become one run.
absl::Status AddRuns(const Index& index, TokenLayout& layout) {
  const uint64_t bytes = layout.data->size();
  const uint64_t width = layout.type.bytes;
  uint64_t run_end = 0;
  uint64_t end = 0;  // of all that the index speaks of
  Numbers<uint32_t> lengths = index.Lengths();
  Numbers<uint64_t> pointers = index.Pointers();
  for (uint64_t i = 0; i < index.sequences(); ++i) {
    uint32_t stored_length;
    RETURN_IF_ERROR(lengths.Next(stored_length));
    uint64_t begin;
    RETURN_IF_ERROR(pointers.Next(begin));
    const int32_t length = static_cast<int32_t>(stored_length);
    const int64_t pointer = static_cast<int64_t>(begin);
    if (length < 0) {
      return index.Damaged(
          kMegatronHeaderBytes + 4 * i,
          absl::StrCat("sequence ", i, " has ", length, " tokens"));
    }
    if (pointer < 0 || begin > bytes || length * width > bytes - begin) {
      return index.Damaged(
          index.PointerAt(i),
          absl::StrCat("sequence ", i, " has ", length, " tokens (",
                       index.type().name, ") from byte ", pointer, ", but ",
                       layout.data->path(), " has ", bytes, " bytes"));
    }
    if (length == 0) continue;
    if (layout.runs.empty() || begin != run_end) {
      layout.runs.push_back({layout.token_count, begin});
    }
    layout.token_count += length;
    run_end = begin + length * width;
    end = std::max(end, run_end);
  }
  if (end == bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      layout.data->path(), ": offset ", end, ": has ", bytes, " bytes, but ",
      index.path(), " speaks of ", end, " only: they are not one dataset"));
}

}  // namespace

bool IsMegatronFile(const std::string& path) {
  return FirstBytes(Prefix(path) + ".idx", kMagic.size()) == kMagic;
}

absl::StatusOr<TokenLayout> ReadMegatronFile(const std::string& path) {
  const std::string prefix = Prefix(path);
  ASSIGN_OR_RETURN(const Index index, Index::Open(prefix + ".idx"));
  TokenLayout layout{.format = "megatron"};
  ASSIGN_OR_RETURN(layout.data, DataFile::Open(prefix + ".bin"));
  layout.type = index.type().type;
  layout.documents = index.documents();
  RETURN_IF_ERROR(AddRuns(index, layout));
  return layout;
}

}  // namespace troupe
