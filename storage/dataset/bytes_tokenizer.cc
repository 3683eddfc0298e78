#include "storage/dataset/bytes_tokenizer.h"

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

class BytesTokenizer final : public Tokenizer {
 public:
  std::string name() const override { return "bytes"; }
  uint64_t vocab_size() const override { return 256; }
  std::optional<int32_t> eos_id() const override { return std::nullopt; }

  absl::Status Encode(absl::string_view text,
                      std::vector<int32_t>& ids) const override {
    ids.reserve(ids.size() + text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return absl::OkStatus();
  }
  absl::Status EncodeLater(absl::string_view text,
                           std::vector<int32_t>& ids) const override {
    return Encode(text, ids);
  }
  size_t CutPoint(absl::string_view text, size_t& searched) const override {
    return text.size();
  }

  absl::StatusOr<std::string> TokenText(int32_t id) const override {
    if (id >= 0 && id <= 255) return std::string(1, static_cast<char>(id));
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer bytes: id ", id, " is not within 0 to 255"));
  }

  absl::StatusOr<std::string> Decode(
      absl::Span<const int32_t> ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (const int32_t id : ids) {
      ASSIGN_OR_RETURN(const std::string byte, TokenText(id));
      text += byte;
    }
    return text;
  }
};

}  // namespace

std::unique_ptr<Tokenizer> MakeBytesTokenizer() {
  return std::make_unique<BytesTokenizer>();
}

}  // namespace troupe
