#include "storage/checkpoint/shard_description.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/checkpoint/manifest_json.h"
#include "storage/checkpoint/strict_json.h"
#include "storage/disk/new_file.h"
#include "storage/disk/storage_error.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr size_t kWriteBytes = size_t{1} << 20;

// Lines that are written as they come.
class LineFile {
 public:
  explicit LineFile(NewFile file) : file_(std::move(file)) {}

  absl::Status Add(const json& line) {
    absl::StrAppend(&text_, FormatJson(line), "\n");
    return text_.size() < kWriteBytes ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    RETURN_IF_ERROR(file_.WriteAt(bytes_, text_));
    bytes_ += text_.size();
    crc32c_ = ExtendCrc32c(crc32c_, text_);
    text_.clear();
    return absl::OkStatus();
  }
  absl::Status Commit() {
    RETURN_IF_ERROR(Flush());
    return file_.Commit();
  }
  uint64_t bytes() const { return bytes_; }
  uint32_t crc32c() const { return crc32c_; }

 private:
  NewFile file_;
  std::string text_;
  uint64_t bytes_ = 0;
  uint32_t crc32c_ = 0;
};

}  // namespace

std::string DescriptionName(absl::string_view file) {
  return absl::StrCat(absl::StripSuffix(file, ".safetensors"), ".shard.jsonl");
}

absl::StatusOr<ShardReceipt> WriteDescription(const std::string& directory,
                                              const ShardFile& shard) {
  ShardReceipt receipt = {.file = shard.file.name,
                          .bytes = shard.file.bytes,
                          .description = DescriptionName(shard.file.name)};
  ASSIGN_OR_RETURN(NewFile file, NewFile::Create(absl::StrCat(
                                     directory, "/", receipt.description)));
  LineFile lines(std::move(file));
  RETURN_IF_ERROR(lines.Add({{"file", FileToJson(shard.file)},
                             {"data_unchecked", shard.data_unchecked}}));
  std::map<absl::string_view, const ManifestTensor*> by_name;
  for (const ManifestTensor& tensor : shard.tensors) {
    by_name[tensor.name] = &tensor;
  }
  for (const auto& [name, tensor] : by_name) {
    RETURN_IF_ERROR(lines.Add(TensorToJson(*tensor)));
  }
  RETURN_IF_ERROR(lines.Commit());
  receipt.description_bytes = lines.bytes();
  receipt.description_crc32c = lines.crc32c();
  return receipt;
}

absl::StatusOr<DescriptionReader> DescriptionReader::Open(
    const std::string& directory, const ShardReceipt& receipt) {
  DescriptionReader reader(absl::StrCat(directory, "/", receipt.description),
                           receipt);
  RETURN_IF_ERROR(reader.ReadHead());
  return reader;
}

absl::Status DescriptionReader::ReadHead() {
  ASSIGN_OR_RETURN(const absl::optional<std::string> line, NextLine());
  if (!line.has_value()) {
    return Damaged(absl::InvalidArgumentError("it is empty"));
  }
  const absl::StatusOr<json> head = ParseJsonObject(*line);
  if (!head.ok()) return Damaged(head.status());
  const auto entry = head->find("file");
  if (entry == head->end()) {
    return Damaged(absl::InvalidArgumentError("\"file\" is missing"));
  }
  absl::StatusOr<ManifestFile> file = FileFromJson(*entry);
  if (!file.ok()) return Damaged(file.status());
  const absl::StatusOr<bool> unchecked = FlagField(*head, "data_unchecked");
  if (!unchecked.ok()) return Damaged(unchecked.status());
  if (file->name != receipt_.file || file->bytes != receipt_.bytes) {
    return Damaged(absl::InvalidArgumentError(absl::StrCat(
        "it is of ", file->name, " of ", file->bytes, " bytes, not of ",
        receipt_.file, " of ", receipt_.bytes)));
  }
  file_ = *std::move(file);
  data_unchecked_ = *unchecked;
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<ManifestTensor>> DescriptionReader::Next() {
  ASSIGN_OR_RETURN(const absl::optional<std::string> line, NextLine());
  if (!line.has_value()) return absl::optional<ManifestTensor>();
  const absl::StatusOr<json> entry = ParseJsonObject(*line);
  if (!entry.ok()) return Damaged(entry.status());
  absl::StatusOr<ManifestTensor> tensor = TensorFromJson(*entry);
  if (!tensor.ok()) return Damaged(tensor.status());
  if (tensor->name <= last_name_) {
    return Damaged(absl::InvalidArgumentError(
        absl::StrCat("tensor ", tensor->name, " comes after ", last_name_)));
  }
  last_name_ = tensor->name;
  return absl::optional<ManifestTensor>(*std::move(tensor));
}

absl::StatusOr<absl::optional<std::string>> DescriptionReader::NextLine() {
  size_t end = buffer_.find('\n', at_);
  while (end == buffer_.npos) {
    if (read_ == receipt_.description_bytes) {
      if (at_ == buffer_.size() && crc32c_ == receipt_.description_crc32c) {
        return absl::optional<std::string>();
      }
      return Damaged(absl::InvalidArgumentError(
          "its checksum is not the one that its rank said"));
    }
    buffer_.erase(0, std::exchange(at_, 0));
    const size_t before = buffer_.size();
    RETURN_IF_ERROR(Fill());
    end = buffer_.find('\n', before);
  }
  absl::optional<std::string> line = buffer_.substr(at_, end - at_);
  at_ = end + 1;
  return line;
}

absl::Status DescriptionReader::Fill() {
  ASSIGN_OR_RETURN(const PosixFile file, PosixFile::Open(path_, IoMode::kRead));
  const size_t before = buffer_.size();
  const size_t bytes =
      std::min<uint64_t>(kBufferBytes, receipt_.description_bytes - read_);
  buffer_.resize(before + bytes);
  const absl::Status read = file.ReadAt(read_, bytes, &buffer_[before]);
  if (absl::IsOutOfRange(read)) return Damaged(read);
  RETURN_IF_ERROR(read);
  crc32c_ =
      ExtendCrc32c(crc32c_, absl::string_view(buffer_).substr(before, bytes));
  read_ += bytes;
  return absl::OkStatus();
}

absl::Status DescriptionReader::Damaged(const absl::Status& why) const {
  return OfStorage(
      absl::DataLossError(absl::StrCat(path_, ": ", why.message())));
}

}  // namespace troupe
