#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/view/format.h"
#include "proto/base/status.h"
#include "storage/dataset/token_file_writer.h"
#include "storage/dataset/tokenizer.h"
#include "storage/dataset/troupe_file.h"

namespace troupe {
namespace {

class DataPrepare final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("FILE", file_, "The text");
    flags.Text(
        "--tokenizer", tokenizer_,
        {.value = "NAME", .text = "bytes: each byte is a token [bytes]"});
    flags.Text("--out!", out_,
               {.value = "FILE", .text = "The token file to write"});
  }

  absl::Status Run(Console& console) override {
    ASSIGN_OR_RETURN(const auto tokenizer, MakeTokenizer(tokenizer_));
    const absl::Time start = absl::Now();
    ASSIGN_OR_RETURN(
        const TokenFileHeader header,
        TokenizeFile(*tokenizer, {.text_path = file_, .path = out_}));
    console.out << out_ << ": " << GroupedText(header.token_count)
                << " tokens, vocabulary " << GroupedText(header.vocab_size)
                << " (" << header.tokenizer << "), "
                << BytesText(kTokenFileHeaderBytes +
                             header.token_count * header.bytes_per_token)
                << ", in "
                << SecondsText(absl::ToDoubleSeconds(absl::Now() - start))
                << "\n";
    return absl::OkStatus();
  }

 private:
  std::string file_;
  std::string tokenizer_ = "bytes";
  std::string out_;
};

}  // namespace

std::unique_ptr<Command> MakeDataPrepare() {
  return std::make_unique<DataPrepare>();
}

}  // namespace troupe
