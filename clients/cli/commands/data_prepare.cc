#include <filesystem>
#include <ostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/local/process.h"
#include "clients/cli/local/programs.h"
#include "clients/cli/progress.h"
#include "clients/cli/view/format.h"
#include "proto/base/cores.h"
#include "proto/base/status.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/open_tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "storage/dataset/text_check.h"
#include "storage/dataset/text_sample.h"
#include "storage/dataset/tokenize_file.h"

namespace troupe {
namespace {

constexpr uint64_t kSampleBytesMax = 16 << 20;
constexpr char kTrained[] = "sentencepiece";

class DataPrepare final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("FILE", file_, "The text");
    flags.Text("--tokenizer", tokenizer_,
               {.value = "NAME",
                .text = "bytes: each byte is a token; sentencepiece: trains a "
                        "model on the text (16 MiB of it at most, evenly "
                        "spread) and puts it beside the token file; or the "
                        "path of a tokenizer.json, a SentencePiece "
                        "tokenizer.model, or a Hugging Face directory with "
                        "one of them [bytes]"});
    flags.Integer("--vocab-size", vocab_size_, {260, 1 << 20},
                  {.value = "N",
                   .text = "Of the model that sentencepiece trains [8000]"});
    flags.Choice("--model-type", model_type_, {"unigram", "bpe"},
                 "Of the model that sentencepiece trains [unigram]");
    flags.Switch("--append-eos-per-line", eos_per_line_,
                 "Each line is a document: EOS follows it. Without, the file "
                 "is one text and nothing is inserted");
    flags.Switch("--any-content", any_content_,
                 "Take FILE as it is, without looking whether it is text");
    flags.Integer("--threads", threads_, {1, 1024},
                  {.value = "N",
                   .text = "That encode; the tokens do not depend on how many "
                           "there are [one a core]"});
    flags.Text("--out!", out_,
               {.value = "FILE", .text = "The token file to write"});
  }

  absl::Status Run(Console& console) override {
    const absl::Time start = absl::Now();
    if (tokenizer_ != kTrained && (vocab_size_ != 0 || !model_type_.empty())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "usage: --vocab-size and --model-type are for a model that is "
          "trained: --tokenizer sentencepiece, not ",
          tokenizer_));
    }
    if (!any_content_) RETURN_IF_ERROR(CheckText(file_));
    Interrupt interrupt;
    const absl::StatusOr<OpenedTokenizer> opened = Open(interrupt, console);
    // A Ctrl-C ends what trains the model as well.
    if (interrupt.Arrived()) return absl::CancelledError("interrupted");
    RETURN_IF_ERROR(opened.status());
    ASSIGN_OR_RETURN(const TokenFileHeader header,
                     Tokenize(*opened, interrupt, console));
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
  absl::StatusOr<OpenedTokenizer> Open(Interrupt& interrupt, Console& console) {
    OpenedTokenizer opened;
    if (tokenizer_ == kTrained) {
      ASSIGN_OR_RETURN(opened.model, Train(interrupt, console));
      ASSIGN_OR_RETURN(opened.tokenizer,
                       MakeSentencePieceTokenizer(opened.model));
      return opened;
    }
    std::error_code error;
    const bool is_path = absl::StrContains(tokenizer_, '/') ||
                         std::filesystem::exists(tokenizer_, error);
    if (is_path) return OpenTokenizer(tokenizer_);
    ASSIGN_OR_RETURN(opened.tokenizer, MakeTokenizer(tokenizer_));
    return opened;
  }

  absl::StatusOr<std::string> Train(Interrupt& interrupt, Console& console) {
    ASSIGN_OR_RETURN(const std::string program,
                     FindProgram("troupe-tokenizer", ThisProgram()));
    const int64_t vocab_size = vocab_size_ == 0 ? 8000 : vocab_size_;
    const std::string type = model_type_.empty() ? "unigram" : model_type_;
    ASSIGN_OR_RETURN(std::string sample,
                     SampleText(file_, {.bytes_max = kSampleBytesMax}));
    console.err << "training a " << type << " vocabulary of "
                << GroupedText(vocab_size) << " on "
                << BytesText(static_cast<int64_t>(sample.size()))
                << " of text ..." << std::endl;
    return RunFilter({.command = {program, absl::StrCat(vocab_size), type},
                      .input = std::move(sample),
                      .keep_going = [&] { return !interrupt.Arrived(); }});
  }

  absl::StatusOr<TokenFileHeader> Tokenize(const OpenedTokenizer& opened,
                                           Interrupt& interrupt,
                                           Console& console) const {
    Progress progress(console, interrupt, "");
    TokenizeFileOptions options = {
        .text_path = file_,
        .path = out_,
        .eos_per_line = eos_per_line_,
        .threads =
            threads_ == 0 ? UsableCoreCount() : static_cast<int>(threads_),
        .progress = [&](uint64_t done, uint64_t total) {
          return progress.Show(static_cast<int64_t>(done),
                               static_cast<int64_t>(total));
        }};
    if (!opened.model.empty()) options.model = opened.model;
    return TokenizeFile(*opened.tokenizer, options);
  }

  std::string file_;
  std::string tokenizer_ = "bytes";
  int64_t vocab_size_ = 0;  // 0 and "": not given
  int64_t threads_ = 0;
  std::string model_type_;
  bool eos_per_line_ = false;
  bool any_content_ = false;
  std::string out_;
};

}  // namespace

std::unique_ptr<Command> MakeDataPrepare() {
  return std::make_unique<DataPrepare>();
}

}  // namespace troupe
