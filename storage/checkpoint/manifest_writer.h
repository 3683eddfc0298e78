// The text of a manifest, written piece by piece: that of a large model is
// never in memory as a whole.
//
//   ManifestWriter writer([&](absl::string_view text) { ... });
//   RETURN_IF_ERROR(writer.Begin(manifest));      // but tensors and files
//   RETURN_IF_ERROR(writer.Add(tensor));          // each, by name
//   RETURN_IF_ERROR(writer.End(files, assets));
#ifndef TROUPE_STORAGE_CHECKPOINT_MANIFEST_WRITER_H_
#define TROUPE_STORAGE_CHECKPOINT_MANIFEST_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/checkpoint/manifest.h"

namespace troupe {

// Opens the last line of a manifest; the checksum in it covers all before it.
inline constexpr absl::string_view kChecksumLine = "\"manifest_crc32c\":";

class ManifestWriter {
 public:
  using Sink = std::function<absl::Status(absl::string_view text)>;

  // The sink gets pieces of about a megabyte, in order; its errors come back.
  explicit ManifestWriter(Sink sink) : sink_(std::move(sink)) {}

  absl::Status Begin(const Manifest& manifest);
  // REQUIRES names that ascend.
  absl::Status Add(ManifestTensor tensor);
  absl::Status End(std::vector<ManifestFile> files,
                   std::vector<ManifestFile> assets);

 private:
  absl::Status Write(absl::string_view text);
  absl::Status Flush();

  const Sink sink_;
  std::string text_;     // not given to the sink yet
  uint32_t crc32c_ = 0;  // of what was
  bool is_first_ = true;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_MANIFEST_WRITER_H_
