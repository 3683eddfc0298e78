#include "storage/dataset/llmc_file.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/engine/little_endian.h"

namespace troupe {
namespace {

constexpr uint64_t kVersionAt = 4;
constexpr uint64_t kTokenCountAt = 8;
constexpr uint64_t kHeaderBytes = 1024;

struct Variant {
  uint32_t magic;
  uint32_t version;
  uint32_t bytes_per_token;
};
constexpr Variant kVariants[] = {
    {20240520, 1, 2},  // gpt-2
    {20240801, 7, 4},  // llama-3
};

const Variant* FindVariant(absl::string_view head) {
  if (head.size() < kVersionAt) return nullptr;
  const uint32_t magic = LoadLittleEndian<uint32_t>(head.data());
  for (const Variant& variant : kVariants) {
    if (variant.magic == magic) return &variant;
  }
  return nullptr;
}

}  // namespace

bool IsLlmcFile(const std::string& path) {
  return FindVariant(FirstBytes(path, kVersionAt)) != nullptr;
}

absl::StatusOr<TokenLayout> ReadLlmcFile(const std::string& path) {
  TokenLayout layout{.format = "llm.c"};
  ASSIGN_OR_RETURN(layout.data, DataFile::Open(path));
  const uint64_t bytes = layout.data->size();
  const auto damaged = [&](uint64_t offset, const std::string& what) {
    return absl::DataLossError(
        absl::StrCat(path, ": offset ", offset, ": ", what));
  };
  if (bytes < kHeaderBytes) {
    return damaged(bytes, absl::StrCat("the file ends inside its ",
                                       kHeaderBytes, " byte header (llm.c)"));
  }
  char head[kHeaderBytes];
  RETURN_IF_ERROR(layout.data->Read(0, sizeof(head), head));
  const Variant* const variant = FindVariant({head, sizeof(head)});
  CHECK(variant != nullptr) << path;
  const uint32_t version = LoadLittleEndian<uint32_t>(head + kVersionAt);
  if (version != variant->version) {
    return damaged(
        kVersionAt,
        absl::StrCat("version ", version, " of llm.c's magic ", variant->magic,
                     "; this program reads ", variant->version));
  }
  const int32_t count =
      static_cast<int32_t>(LoadLittleEndian<uint32_t>(head + kTokenCountAt));
  if (count < 0) {
    return damaged(kTokenCountAt, absl::StrCat(count, " tokens"));
  }
  layout.token_count = static_cast<uint64_t>(count);
  layout.type = {.bytes = variant->bytes_per_token};
  const uint64_t want = kHeaderBytes + layout.token_count * layout.type.bytes;
  if (bytes != want) {
    return damaged(
        std::min<uint64_t>(bytes, want),
        absl::StrCat("the file has ", bytes, " bytes, its header says ", want,
                     bytes < want ? ": it is truncated"
                                  : ": something follows the tokens"));
  }
  if (layout.token_count > 0) layout.runs = {{0, kHeaderBytes}};
  return layout;
}

}  // namespace troupe
