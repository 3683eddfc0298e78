#include "storage/checkpoint/safetensors_writer.h"

#include <utility>

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/checkpoint/manifest_entries.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    IoEngine& engine, const std::string& path,
    std::vector<SafetensorsTensor> tensors, SafetensorsMetadata metadata,
    OnBytesMoved moved) {
  ASSIGN_OR_RETURN(SafetensorsHeader header,
                   LayOutSafetensors(std::move(tensors), std::move(metadata)));
  ASSIGN_OR_RETURN(std::unique_ptr<FileStream> stream,
                   FileStream::Create(engine, path,
                                      {.block_bytes = kBlockBytes,
                                       .moved = std::move(moved)}));
  RETURN_IF_ERROR(stream->Append(FormatSafetensorsHeader(header)));
  return std::unique_ptr<SafetensorsWriter>(
      new SafetensorsWriter(std::move(header), std::move(stream)));
}

SafetensorsWriter::SafetensorsWriter(SafetensorsHeader header,
                                     std::unique_ptr<FileStream> stream)
    : header_(std::move(header)), stream_(std::move(stream)) {}

absl::Status SafetensorsWriter::Append(absl::string_view name,
                                       absl::string_view bytes) {
  while (NextIsFull() && header_.tensors[next_].name != name) {
    ++next_;
    appended_ = 0;
  }
  CHECK(next_ < header_.tensors.size()) << name << ": all tensors are full";
  const SafetensorsTensor& tensor = header_.tensors[next_];
  CHECK(tensor.name == name)
      << name << ": the order of the header asks for " << tensor.name;
  CHECK_LE(appended_ + bytes.size(), tensor.end - tensor.begin);
  appended_ += bytes.size();
  return stream_->Append(bytes);
}

absl::StatusOr<FileSummary> SafetensorsWriter::Finish() {
  while (NextIsFull()) {
    ++next_;
    appended_ = 0;
  }
  CHECK_EQ(next_, header_.tensors.size()) << "not all tensors are appended";
  return stream_->Finish();
}

bool SafetensorsWriter::NextIsFull() const {
  return next_ < header_.tensors.size() &&
         appended_ == header_.tensors[next_].end - header_.tensors[next_].begin;
}

}  // namespace troupe
