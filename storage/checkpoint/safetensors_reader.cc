#include "storage/checkpoint/safetensors_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/engine/little_endian.h"

namespace troupe {

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(
    const std::string& path) {
  ASSIGN_OR_RETURN(PosixFile file, PosixFile::Open(path, IoMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t file_bytes, file.Size());
  char length[8];
  if (file_bytes < sizeof(length)) {
    return absl::DataLossError(absl::StrCat(
        path,
        ": offset 0: a safetensors file begins with 8 bytes, this one has ",
        file_bytes, ": it is truncated"));
  }
  RETURN_IF_ERROR(file.ReadAt(0, sizeof(length), length));
  const uint64_t json_bytes = LoadLittleEndian<uint64_t>(length);
  if (json_bytes > kSafetensorsHeaderBytesMax) {
    return absl::DataLossError(absl::StrCat(
        path, ": offset 0: header of ", json_bytes, " bytes, at most ",
        kSafetensorsHeaderBytesMax, " make sense: not a safetensors file?"));
  }
  if (json_bytes > file_bytes - sizeof(length)) {
    return absl::DataLossError(
        absl::StrCat(path, ": offset 0: header of ", json_bytes,
                     " bytes does not fit into a file of ", file_bytes,
                     " bytes: it is truncated or no safetensors file"));
  }
  std::string json(json_bytes, '\0');
  RETURN_IF_ERROR(file.ReadAt(sizeof(length), json_bytes, json.data()));
  ASSIGN_OR_RETURN(SafetensorsHeader header,
                   ParseSafetensorsHeader(
                       {.path = path, .json = json, .file_bytes = file_bytes}));
  return SafetensorsReader(std::move(file), std::move(header));
}

SafetensorsReader::SafetensorsReader(PosixFile file, SafetensorsHeader header)
    : file_(std::move(file)), header_(std::move(header)) {
  for (size_t i = 0; i < header_.tensors.size(); ++i) {
    index_.emplace(header_.tensors[i].name, i);
  }
}

const SafetensorsTensor* SafetensorsReader::Find(absl::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &header_.tensors[it->second];
}

absl::Status SafetensorsReader::Read(const SafetensorsTensor& tensor,
                                     const ByteRange& range, void* out) const {
  const uint64_t bytes = tensor.end - tensor.begin;
  if (range.offset > bytes || range.bytes > bytes - range.offset) {
    return absl::OutOfRangeError(absl::StrCat(
        path(), ": bytes ", range.offset, " to ", range.offset + range.bytes,
        " of tensor \"", tensor.name, "\", which has ", bytes));
  }
  return file_.ReadAt(header_.data_offset + tensor.begin + range.offset,
                      range.bytes, static_cast<char*>(out));
}

absl::Status SafetensorsReader::ReadAll(const SafetensorsTensor& tensor,
                                        void* out) const {
  return Read(tensor, {.offset = 0, .bytes = tensor.end - tensor.begin}, out);
}

}  // namespace troupe
