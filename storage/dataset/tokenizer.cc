#include "storage/dataset/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace troupe {
namespace {

class BytesTokenizer final : public Tokenizer {
 public:
  absl::string_view name() const override { return "bytes"; }
  uint64_t vocab_size() const override { return 256; }

  absl::Status Encode(absl::string_view text,
                      std::vector<int32_t>& ids) const override {
    ids.reserve(ids.size() + text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Decode(
      absl::Span<const int32_t> ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (const int32_t id : ids) {
      if (id < 0 || id > 255) {
        return absl::InvalidArgumentError(absl::StrCat(
            "tokenizer bytes: id ", id, " is not within 0 to 255"));
      }
      text.push_back(static_cast<char>(id));
    }
    return text;
  }
};

template <typename T>
std::unique_ptr<Tokenizer> Make() {
  return std::make_unique<T>();
}

struct TokenizerRow {
  absl::string_view name;
  std::unique_ptr<Tokenizer> (*make)();
};

constexpr TokenizerRow kTable[] = {
    {"bytes", &Make<BytesTokenizer>},
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(
    absl::string_view name) {
  for (const TokenizerRow& row : kTable) {
    if (row.name == name) return row.make();
  }
  const std::string names = absl::StrJoin(
      kTable, ", ", [](std::string* out, const TokenizerRow& row) {
        absl::StrAppend(out, row.name);
      });
  return absl::InvalidArgumentError(
      absl::StrCat("unknown tokenizer \"", name, "\"; use ", names));
}

}  // namespace troupe
