// Files of weights with one value that somebody put there.
#ifndef TROUPE_TESTS_STORAGE_CHECKPOINT_PLANTED_VALUE_H_
#define TROUPE_TESTS_STORAGE_CHECKPOINT_PLANTED_VALUE_H_

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "storage/checkpoint/manifest.h"
#include "storage/checkpoint/safetensors_reader.h"

namespace troupe {

struct ElementOf {
  std::string tensor;  // as the file names it
  int64_t element = 0;
};

// Writes an element of an f32 tensor of a safetensors file.
inline void PlantValue(const std::string& path, const ElementOf& at,
                       float value) {
  const absl::StatusOr<SafetensorsReader> reader =
      SafetensorsReader::Open(path);
  CHECK_OK(reader.status());
  const SafetensorsTensor* tensor = reader->Find(at.tensor);
  CHECK(tensor != nullptr) << path << " has no " << at.tensor;
  CHECK(tensor->dtype == StoredDType::kF32) << at.tensor;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(reader->header().data_offset +
                                         tensor->begin +
                                         at.element * sizeof(value)));
  file.write(reinterpret_cast<const char*>(&value), sizeof(value));
}

// The same in a checkpoint's file of at most one block, whose manifest then
// says that it was saved so.
inline void PlantValueInCheckpoint(const std::string& checkpoint,
                                   const std::string& file, const ElementOf& at,
                                   float value) {
  const std::string path = checkpoint + "/" + file;
  PlantValue(path, at, value);
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  absl::StatusOr<Manifest> manifest = ReadManifest(checkpoint);
  CHECK_OK(manifest.status());
  for (ManifestFile& listed : manifest->files) {
    if (listed.name != file) continue;
    CHECK_LE(listed.bytes, kBlockBytes);
    listed.crc32c = Crc32c(content.str());
    listed.blocks = {listed.crc32c};
  }
  std::ofstream(checkpoint + "/manifest.json") << FormatManifest(*manifest);
}

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_CHECKPOINT_PLANTED_VALUE_H_
