#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/view/format.h"
#include "proto/base/status.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/token_file.h"

namespace troupe {
namespace {

constexpr uint64_t kIdsShown = 16;
constexpr uint64_t kTextTokens = 64;  // whose text is shown

std::string OrUnknown(uint64_t number) {
  return number == 0 ? "not said in the file" : GroupedText(number);
}

class DataInspect final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("FILE", file_,
                   "A token file: of `troupe data prepare`, Megatron-LM "
                   "(prefix, .bin or .idx) or llm.c");
    flags.Switch("--verify", verify_,
                 "Read all of it: each id against the vocabulary, the "
                 "checksum where there is one, and the ends of documents");
  }

  absl::Status Run(Console& console) override {
    ASSIGN_OR_RETURN(const TokenFile file, TokenFile::Open(file_));
    const TokenLayout& layout = file.layout();
    std::ostream& out = console.out;
    out << "format      " << layout.format << "\n"
        << "file        " << layout.data->path() << ", "
        << BytesText(layout.data->size()) << "\n"
        << "tokens      " << GroupedText(layout.token_count) << ", of "
        << layout.type.bytes << (layout.type.bytes == 1 ? " byte" : " bytes")
        << "\n"
        << "documents   " << OrUnknown(layout.documents) << "\n"
        << "vocabulary  " << OrUnknown(layout.vocab_size) << "\n";
    ShowWhatCounts(layout, out);
    std::vector<int32_t> ids(std::min(kTextTokens, file.size()));
    RETURN_IF_ERROR(file.Read(0, ids.size(), ids.data()));
    const size_t shown = std::min<size_t>(ids.size(), kIdsShown);
    ShowText(ids, layout, out);
    out << "first ids   "
        << absl::StrJoin(ids.begin(), ids.begin() + shown, " ")
        << (file.size() > shown ? " ..." : "") << "\n";
    if (!verify_) return absl::OkStatus();
    RETURN_IF_ERROR(file.Verify());
    out << "verified    every id"
        << (layout.data_crc32c.has_value() ? " and the checksum" : "")
        << (layout.document_ends.has_value() ? ", and the ends of documents"
                                             : "")
        << (layout.counted.has_value() ? ", and which tokens count" : "")
        << "\n";
    return absl::OkStatus();
  }

 private:
  static void ShowWhatCounts(const TokenLayout& layout, std::ostream& out) {
    if (!layout.counted.has_value()) return;
    out << "counted     " << GroupedText(layout.counted->tokens)
        << " tokens count in the loss\n";
    if (layout.packed_length == 0) return;
    out << "packed      into sequences of " << GroupedText(layout.packed_length)
        << " tokens\n";
  }

  void ShowText(const std::vector<int32_t>& ids, const TokenLayout& layout,
                std::ostream& out) const {
    if (layout.tokenizer.empty()) {
      out << "tokenizer   not said in the file\n";
      return;
    }
    const auto tokenizer = LoadTokenizer(layout.tokenizer, file_);
    out << "tokenizer   " << layout.tokenizer << "\n";
    const absl::StatusOr<std::string> text =
        tokenizer.ok() ? (*tokenizer)->Decode(ids) : tokenizer.status();
    // What is missing beside the file makes the file no worse.
    out << "first text  "
        << (text.ok() ? absl::StrCat("\"", absl::Utf8SafeCEscape(*text), "\"")
                      : std::string(text.status().message()))
        << "\n";
  }

  std::string file_;
  bool verify_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDataInspect() {
  return std::make_unique<DataInspect>();
}

}  // namespace troupe
