// Writes one safetensors file through an engine, as a stream: the tensors are
// declared first, then their bytes are appended in the order of the header.
// Memory is bounded (a few aligned buffers of 1 MiB), whatever the size; the
// checksum is computed on the way.
//
//   ASSIGN_OR_RETURN(auto writer, SafetensorsWriter::Create(
//       engine, path, {{.name = "w", .dtype = kF32, .shape = {2, 3}}}, {}));
//   for (const SafetensorsTensor& t : writer->header().tensors)
//     RETURN_IF_ERROR(writer->Append(t.name, bytes_of(t)));
//   ASSIGN_OR_RETURN(FileSummary summary, writer->Finish());
#ifndef TROUPE_STORAGE_CHECKPOINT_SAFETENSORS_WRITER_H_
#define TROUPE_STORAGE_CHECKPOINT_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/checkpoint/safetensors.h"
#include "storage/engine/engine.h"
#include "storage/engine/file_stream.h"

namespace troupe {

class SafetensorsWriter {
 public:
  // Makes or empties the file. The engine must be idle, must outlive the
  // writer, and is the writer's until Finish. `begin` and `end` are ignored.
  // `moved` is told of what is written.
  static absl::StatusOr<std::unique_ptr<SafetensorsWriter>> Create(
      IoEngine& engine, const std::string& path,
      std::vector<SafetensorsTensor> tensors, SafetensorsMetadata metadata,
      OnBytesMoved moved = nullptr);

  // The order in which to append.
  const SafetensorsHeader& header() const { return header_; }

  // The next bytes of tensor `name`, in any number of pieces; copied before it
  // returns. Errors: those of the disk; CHECKs the order and the sizes.
  absl::Status Append(absl::string_view name, absl::string_view bytes);

  // Once all is appended: the file is complete and durable (fsync) on OK. With
  // the checksums of blocks of kBlockBytes.
  absl::StatusOr<FileSummary> Finish();

 private:
  SafetensorsWriter(SafetensorsHeader header,
                    std::unique_ptr<FileStream> stream);
  bool NextIsFull() const;

  SafetensorsHeader header_;
  std::unique_ptr<FileStream> stream_;
  size_t next_ = 0;        // the tensor that is being appended
  uint64_t appended_ = 0;  // bytes of it so far
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_SAFETENSORS_WRITER_H_
