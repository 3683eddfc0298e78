// Any bytes as a safetensors file, as they are and with a length before them
// that makes them all header: what opens is read, whole and past its ends.
#include <cstdint>
#include <string>
#include <vector>

#include "proto/base/check.h"
#include "storage/checkpoint/safetensors_reader.h"
#include "storage/engine/little_endian.h"
#include "tests/fuzz/scratch_dir.h"

namespace troupe {
namespace {

void ReadTensors(const std::string& path) {
  const absl::StatusOr<SafetensorsReader> file = SafetensorsReader::Open(path);
  if (!file.ok()) return;
  for (const SafetensorsTensor& tensor : file->header().tensors) {
    CHECK(file->Find(tensor.name) != nullptr) << tensor.name;
    // The tensors fill the file, so none is larger than the input.
    const uint64_t bytes = tensor.end - tensor.begin;
    std::vector<char> out(bytes + 1);
    CHECK_OK(file->ReadAll(tensor, out.data()));
    CHECK(!file->Read(tensor, {.offset = 1, .bytes = bytes}, out.data()).ok());
    CHECK(!file->Read(tensor, {.offset = UINT64_MAX, .bytes = 2}, out.data())
               .ok());
  }
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const troupe::ScratchDir scratch;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  troupe::ReadTensors(scratch.Write("a.safetensors", bytes));
  std::string length(8, '\0');
  troupe::StoreLittleEndian<uint64_t>(size, length.data());
  troupe::ReadTensors(scratch.Write("a.safetensors", length + bytes));
  return 0;
}
