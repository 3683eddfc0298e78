#include "storage/checkpoint/safetensors_writer.h"

#include <cerrno>

#include "gtest/gtest.h"
#include "proto/base/crc32c.h"
#include "storage/engine/in_memory_engine.h"
#include "storage/engine/make_engine.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

const std::vector<SafetensorsTensor> kTensors = {
    {"w", StoredDType::kF32, {1000, 3}},
    {"empty", StoredDType::kF32, {0, 3}},
    {"bytes", StoredDType::kU8, {5}},
};

// Tensor by tensor, in pieces of 700 bytes.
absl::StatusOr<FileSummary> Write(IoEngine& engine, const std::string& path) {
  auto writer = SafetensorsWriter::Create(engine, path, kTensors, {});
  if (!writer.ok()) return writer.status();
  for (const SafetensorsTensor& tensor : (*writer)->header().tensors) {
    for (uint64_t at = tensor.begin; at < tensor.end; at += 700) {
      const std::string piece(std::min<uint64_t>(700, tensor.end - at),
                              tensor.name[0]);
      (*writer)->Append(tensor.name, piece).IgnoreError();
    }
  }
  return (*writer)->Finish();
}

TEST(SafetensorsWriter, WritesHeaderAndDataWithTheirChecksum) {
  TempDir dir;
  const auto engine = MakeIoEngine();
  const auto summary = Write(**engine, dir.File("f"));
  ASSERT_TRUE(summary.ok()) << summary.status().ToString();
  const std::string file = ReadText(dir.File("f"));
  EXPECT_EQ(summary->bytes, file.size());
  EXPECT_EQ(summary->crc32c, Crc32c(file));
  EXPECT_EQ(file.substr(file.size() - 12005),
            std::string(12000, 'w') + "bbbbb");
}

TEST(SafetensorsWriter, AFullDiskIsReported) {
  InMemoryEngine engine(4, {.disk_bytes = 5000});
  EXPECT_TRUE(Fails(Write(engine, "f").status(),
                    absl::StatusCode::kResourceExhausted, {"f: write"}));
  TempDir dir;
  const auto real = MakeIoEngine();
  EXPECT_TRUE(Fails(Write(**real, "/dev/full").status(),
                    absl::StatusCode::kResourceExhausted,
                    {"/dev/full", "ENOSPC", "free space"}));
}

TEST(SafetensorsWriterDeathTest, TheOrderIsChecked) {
  InMemoryEngine engine(4);
  const auto writer = SafetensorsWriter::Create(engine, "f", kTensors, {});
  ASSERT_TRUE(writer.ok());
  EXPECT_DEATH((*writer)->Append("bytes", "12345").IgnoreError(),
               "the order of the header asks for");
  EXPECT_DEATH((*writer)->Finish().status().IgnoreError(), "not all tensors");
}

}  // namespace
}  // namespace troupe
