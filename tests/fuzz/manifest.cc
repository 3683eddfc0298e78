// Any text as the manifest of a checkpoint whose shard files are not what it
// says, with its checksum mended: nobody may read past what is there, and what
// is accepted survives being written and read again.
#include "storage/checkpoint/manifest.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "storage/checkpoint/shard_description.h"
#include "storage/checkpoint/tensor_reader.h"
#include "tests/fuzz/scratch_dir.h"

namespace troupe {
namespace {

constexpr int64_t kElementsRead = 1 << 12;
constexpr absl::string_view kChecksum = "\"manifest_crc32c\":";

// The text with a last line that holds its checksum.
std::string Mended(absl::string_view text) {
  const absl::string_view body = text.substr(0, text.rfind(kChecksum));
  return absl::StrFormat("%s%s \"%08x\"\n}\n", body, kChecksum, Crc32c(body));
}

// One tensor "w" of 2 x 3 floats, which manifests may name.
std::string ShardBytes() {
  absl::StatusOr<SafetensorsHeader> header = LayOutSafetensors(
      {{.name = "w", .dtype = StoredDType::kF32, .shape = {2, 3}}}, {});
  CHECK_OK(header.status());
  return FormatSafetensorsHeader(*header) + std::string(24, '\1');
}

void ReadTensors(const std::string& path) {
  const auto reader = TensorReader::Open(path);
  if (!reader.ok()) return;
  std::vector<char> out(kElementsRead * 8);
  for (const ManifestTensor& tensor : (*reader)->manifest().tensors) {
    const int64_t count = ElementCount(tensor.shape);
    if (count > kElementsRead) continue;
    (*reader)
        ->Read(tensor.name, tensor.dtype, WholeTensor(tensor.shape), out.data())
        .IgnoreError();
    (*reader)
        ->ReadRange(tensor.name, tensor.dtype,
                    {.begin = count / 3, .count = count / 2}, out.data())
        .IgnoreError();
  }
}

// The text as what a rank says of its shard.
void ReadDescription(const std::string& directory, absl::string_view text) {
  auto reader =
      DescriptionReader::Open(directory, {.file = "rank-00000.safetensors",
                                          .bytes = 96,
                                          .description = "description",
                                          .description_bytes = text.size(),
                                          .description_crc32c = Crc32c(text)});
  if (!reader.ok()) return;
  while (true) {
    const auto tensor = reader->Next();
    if (!tensor.ok() || !tensor->has_value()) return;
  }
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const troupe::ScratchDir scratch;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  scratch.Write("description", std::string(text));
  troupe::ReadDescription(scratch.path(), text);
  const std::string mended = troupe::Mended(text);
  const absl::StatusOr<troupe::Manifest> manifest =
      troupe::ParseManifest(mended, "manifest.json");
  if (!manifest.ok()) return 0;
  const std::string printed = troupe::FormatManifest(*manifest);
  const absl::StatusOr<troupe::Manifest> again =
      troupe::ParseManifest(printed, "printed");
  CHECK_OK(again.status());
  CHECK_EQ(troupe::FormatManifest(*again), printed);
  scratch.Write("rank-00000.safetensors", troupe::ShardBytes());
  scratch.Write(troupe::kManifestFile, mended);
  troupe::ReadTensors(scratch.path());
  return 0;
}
