#include "storage/dataset/megatron_file.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/engine/little_endian.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr absl::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kVersionAt = 9;
constexpr uint64_t kTypeAt = 17;
constexpr uint64_t kSequenceCountAt = 18;
constexpr uint64_t kDocumentCountAt = 26;
constexpr uint64_t kHeaderBytes = 34;
constexpr uint64_t kIndexBytesMax = uint64_t{1} << 36;

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

uint64_t LoadU64(absl::string_view bytes, uint64_t at) {
  return LoadLittleEndian<uint64_t>(bytes.data() + at);
}

// The parts of a checked .idx.
class Index {
 public:
  static absl::StatusOr<Index> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const TypeRow& type() const { return *type_; }
  uint64_t sequences() const { return sequences_; }
  uint64_t documents() const { return documents_ - 1; }
  uint64_t PointerAt(uint64_t sequence) const {
    return kHeaderBytes + 4 * sequences_ + 8 * sequence;
  }
  int32_t Length(uint64_t sequence) const {
    return static_cast<int32_t>(LoadLittleEndian<uint32_t>(
        bytes_.data() + kHeaderBytes + 4 * sequence));
  }
  int64_t Pointer(uint64_t sequence) const {
    return static_cast<int64_t>(LoadU64(bytes_, PointerAt(sequence)));
  }
  absl::Status Damaged(uint64_t offset, absl::string_view what) const {
    return absl::DataLossError(
        absl::StrCat(path(), ": offset ", offset, ": ", what));
  }

 private:
  absl::Status CheckHeader();
  absl::Status CheckSize() const;
  absl::Status CheckDocuments() const;

  std::string path_;
  std::string bytes_;
  const TypeRow* type_ = nullptr;
  uint64_t sequences_ = 0;
  uint64_t documents_ = 0;  // entries of the document index
};

absl::StatusOr<Index> Index::Open(const std::string& path) {
  Index index;
  index.path_ = path;
  ASSIGN_OR_RETURN(index.bytes_, ReadWholeFile(path, kIndexBytesMax));
  RETURN_IF_ERROR(index.CheckHeader());
  RETURN_IF_ERROR(index.CheckSize());
  RETURN_IF_ERROR(index.CheckDocuments());
  return index;
}

absl::Status Index::CheckHeader() {
  const absl::string_view bytes = bytes_;
  if (bytes.size() < kHeaderBytes) {
    return Damaged(bytes.size(), absl::StrCat("the file ends inside its ",
                                              kHeaderBytes, " byte header"));
  }
  const uint64_t version = LoadU64(bytes, kVersionAt);
  if (version != 1) {
    return Damaged(kVersionAt,
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
  sequences_ = LoadU64(bytes, kSequenceCountAt);
  documents_ = LoadU64(bytes, kDocumentCountAt);
  return absl::OkStatus();
}

absl::Status Index::CheckSize() const {
  const uint64_t bytes = bytes_.size();
  // First that no product overflows.
  if (sequences_ > bytes || documents_ > bytes) {
    return Damaged(kSequenceCountAt,
                   absl::StrCat(sequences_, " sequences and ", documents_,
                                " documents do not fit into ", bytes,
                                " bytes: it is truncated or damaged"));
  }
  const uint64_t want = kHeaderBytes + 12 * sequences_ + 8 * documents_;
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
  const uint64_t at = kHeaderBytes + 12 * sequences_;
  if (documents_ == 0) return Damaged(kDocumentCountAt, "no document index");
  uint64_t before = 0;
  for (uint64_t i = 0; i < documents_; ++i) {
    const uint64_t sequence = LoadU64(bytes_, at + 8 * i);
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
  for (uint64_t i = 0; i < index.sequences(); ++i) {
    const int32_t length = index.Length(i);
    const int64_t pointer = index.Pointer(i);
    if (length < 0) {
      return index.Damaged(
          kHeaderBytes + 4 * i,
          absl::StrCat("sequence ", i, " has ", length, " tokens"));
    }
    const uint64_t begin = static_cast<uint64_t>(pointer);
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
