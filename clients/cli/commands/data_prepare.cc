#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/local/process.h"
#include "clients/cli/local/programs.h"
#include "clients/cli/progress.h"
#include "clients/cli/view/format.h"
#include "proto/base/cores.h"
#include "proto/base/status.h"
#include "storage/chat_template/chat_format.h"
#include "storage/corpus/check_corpus.h"
#include "storage/corpus/corpus_files.h"
#include "storage/corpus/corpus_sample.h"
#include "storage/corpus/prepare_tokens.h"
#include "storage/corpus/record_encoder.h"
#include "storage/corpus/train_bpe.h"
#include "storage/dataset/hugging_face/tokenizer.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/open_tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"

namespace troupe {
namespace {

constexpr uint64_t kSampleBytesMax = 16 << 20;
constexpr char kTrained[] = "sentencepiece";
constexpr int64_t kVocabSize = 8000;

class DataPrepare final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.RequiredTexts(
        "FILE", inputs_,
        "Texts (.txt), JSON lines (.jsonl), both also as .gz or .zst; folders "
        "with such files; -: the standard input");
    flags.Choice("--format", format_, {"text", "jsonl"},
                 "Of all files, whatever their names [by the name; text]");
    flags.Text("--field", rules_.field,
               {.value = "NAME",
                .text = "Of JSON lines: the field that is the text [text]"});
    flags.Switch(
        "--completions", completions_,
        "For fine-tuning: JSON lines are records with \"prompt\" and "
        "\"completion\", or with \"messages\", and only what the model "
        "is to write counts in the loss");
    flags.Text(
        "--chat-template", chat_template_,
        {.value = "FILE",
         .text = "Of messages, a Jinja template [that of the tokenizer's "
                 "directory]"});
    flags.Integer("--sequence-length", sequence_length_, {2, 1 << 30},
                  {.value = "N",
                   .text = "Of records: pack whole ones into sequences of N "
                           "tokens, which training.sequence_length must be "
                           "then [they follow each other]"});
    flags.Switch("--skip-bad-lines", rules_.skip_bad_lines,
                 "Leave out and count lines that are no JSON, have no such "
                 "field or are no such record, or are too long");
    flags.Integer("--max-line-mib", line_mib_max_, {1, 4096},
                  {.value = "N",
                   .text = "The longest line that is one document; it is held "
                           "in memory [64]"});
    flags.Text("--tokenizer", tokenizer_,
               {.value = "NAME",
                .text = "bytes: each byte is a token; sentencepiece: trains a "
                        "model on the text (16 MiB of it at most, evenly "
                        "spread) and puts it beside the token file; or the "
                        "path of a tokenizer.json, a SentencePiece "
                        "tokenizer.model, or a Hugging Face directory with "
                        "one of them [bytes]"});
    flags.Choice("--train-tokenizer", trained_kind_, {"bpe"},
                 "In place of --tokenizer. bpe: trains a byte-level BPE on all "
                 "of the text and puts its tokenizer.json beside the token "
                 "file, as FILE.tokens.model");
    flags.Integer(
        "--vocab-size", vocab_size_, {260, 1 << 20},
        {.value = "N", .text = "Of the tokenizer that is trained [8000]"});
    flags.Choice("--model-type", model_type_, {"unigram", "bpe"},
                 "Of the model that sentencepiece trains [unigram]");
    flags.Switch("--append-eos-per-line", eos_per_line_,
                 "Each line of a text is a document. Without, the file is one. "
                 "EOS follows each document where the tokenizer has one");
    flags.Switch(
        "--any-content", any_content_,
        "Take the bytes of each FILE as they are: nothing is unpacked, "
        "and whether it is text is not looked at");
    flags.Integer("--threads", threads_, {1, 1024},
                  {.value = "N",
                   .text = "That encode; the tokens do not depend on how many "
                           "there are [one a core]"});
    flags.Text("--out!", out_,
               {.value = "FILE", .text = "The token file to write"});
  }

  absl::Status Run(Console& console) override {
    const absl::Time start = absl::Now();
    RETURN_IF_ERROR(CheckFlags());
    RETURN_IF_ERROR(FindFiles(console));
    Interrupt interrupt;
    const absl::StatusOr<OpenedTokenizer> opened = Open(interrupt, console);
    // A Ctrl-C ends what trains the model as well.
    if (interrupt.Arrived()) return absl::CancelledError("interrupted");
    RETURN_IF_ERROR(opened.status());
    RETURN_IF_ERROR(OpenRecords(*opened->tokenizer));
    ASSIGN_OR_RETURN(const PreparedTokens prepared,
                     Tokenize(*opened, interrupt, console));
    Say(prepared, opened->tokenizer->eos_id().has_value(), absl::Now() - start,
        console);
    return absl::OkStatus();
  }

 private:
  void Say(const PreparedTokens& prepared, bool ends_documents,
           absl::Duration spent, Console& console) const {
    const TokenFileHeader& header = prepared.header;
    console.out << out_ << ": " << GroupedText(header.token_count)
                << " tokens in " << GroupedText(header.documents)
                << (header.documents == 1 ? " document" : " documents")
                << ", vocabulary " << GroupedText(header.vocab_size) << " ("
                << header.tokenizer << "), "
                << BytesText(static_cast<int64_t>(TokenFileBytes(header)))
                << ", in " << SecondsText(absl::ToDoubleSeconds(spent)) << "\n";
    if (header.counted.has_value()) SayWhatCounts(prepared, console);
    if (header.documents > 1 && !ends_documents) {
      console.err << "the tokenizer " << header.tokenizer
                  << " has no token that ends a document: a model will not "
                     "see where one ends\n";
    }
    if (prepared.skipped_lines > 0) {
      console.err << GroupedText(prepared.skipped_lines)
                  << " bad lines were left out\n";
    }
  }

  static void SayWhatCounts(const PreparedTokens& prepared, Console& console) {
    const TokenFileHeader& header = prepared.header;
    console.out << GroupedText(header.counted->tokens)
                << " tokens count in the loss";
    const uint64_t length = header.counted->sequence_length;
    if (length > 0) {
      console.out << "; " << GroupedText(header.token_count / length)
                  << " sequences of " << GroupedText(length) << ", "
                  << GroupedText(prepared.padding) << " tokens are padding";
    }
    console.out << "\n";
  }

  absl::Status CheckFlags() {
    RETURN_IF_ERROR(CheckRecordFlags());
    const bool bpe = !trained_kind_.empty();
    if (bpe && !tokenizer_.empty()) {
      return absl::InvalidArgumentError(
          "usage: --train-tokenizer is in place of --tokenizer; give one");
    }
    if (tokenizer_.empty() && !bpe) tokenizer_ = "bytes";
    const bool trains = bpe || tokenizer_ == kTrained;
    if (!trains && (vocab_size_ != 0 || !model_type_.empty())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "usage: --vocab-size and --model-type are for a model that is "
          "trained: --train-tokenizer bpe or --tokenizer sentencepiece, not ",
          tokenizer_));
    }
    if (bpe && !model_type_.empty()) {
      return absl::InvalidArgumentError(
          "usage: --model-type is for --tokenizer sentencepiece");
    }
    if (vocab_size_ == 0) vocab_size_ = kVocabSize;
    return absl::OkStatus();
  }

  absl::Status CheckRecordFlags() const {
    if (!completions_) {
      if (chat_template_.empty() && sequence_length_ == 0) {
        return absl::OkStatus();
      }
      return absl::InvalidArgumentError(
          "usage: --chat-template and --sequence-length are for --completions");
    }
    if (!trained_kind_.empty() || tokenizer_ == kTrained) {
      return absl::InvalidArgumentError(
          "usage: --completions needs the tokenizer of a model that is there: "
          "--tokenizer DIR");
    }
    if (rules_.field != PartRules().field || eos_per_line_ || any_content_) {
      return absl::InvalidArgumentError(
          "usage: --field, --append-eos-per-line and --any-content are for "
          "texts, not for --completions");
    }
    return absl::OkStatus();
  }

  // What becomes of records, where lines are some.
  absl::Status OpenRecords(const Tokenizer& tokenizer) {
    if (!completions_) return absl::OkStatus();
    absl::StatusOr<chat::ChatFormat> format = chat::OpenChatFormat(
        TokenizerIsPath() ? tokenizer_ : "", chat_template_);
    // Prompts and completions that are texts need none.
    const bool may_lack =
        chat_template_.empty() && absl::IsNotFound(format.status());
    if (!format.ok() && !may_lack) return format.status();
    absl::StatusOr<RecordEncoder> records =
        RecordEncoder::Create(tokenizer, std::move(format));
    RETURN_IF_ERROR(records.status());
    records_ = std::make_unique<RecordEncoder>(*std::move(records));
    rules_.records = records_.get();
    rules_.sequence_length = static_cast<uint64_t>(sequence_length_);
    return absl::OkStatus();
  }

  absl::Status FindFiles(Console& console) {
    rules_.line_bytes_max = static_cast<uint64_t>(line_mib_max_) << 20;
    CorpusFilesOptions options = {.inputs = inputs_};
    if (format_ == "jsonl") options.format = TextFormat::kJsonl;
    if (format_ == "text") options.format = TextFormat::kText;
    ASSIGN_OR_RETURN(CorpusFiles found, FindCorpusFiles(options));
    for (CorpusFile& file : found.files) {
      if (any_content_ && format_.empty()) file.format = TextFormat::kText;
      if (eos_per_line_ && file.format == TextFormat::kText) {
        file.format = TextFormat::kLines;
      }
    }
    files_ = std::move(found.files);
    if (!found.passed_over.empty()) {
      console.err << "passed over: "
                  << absl::StrJoin(found.passed_over, ", ",
                                   [](std::string* out, const auto& kind) {
                                     absl::StrAppend(out, kind.second, " of ",
                                                     kind.first);
                                   })
                  << "\n";
    }
    return any_content_ ? absl::OkStatus() : CheckCorpus(files_);
  }

  absl::StatusOr<OpenedTokenizer> Open(Interrupt& interrupt, Console& console) {
    OpenedTokenizer opened;
    if (!trained_kind_.empty()) {
      ASSIGN_OR_RETURN(opened.model, TrainByteLevel(interrupt, console));
      ASSIGN_OR_RETURN(opened.tokenizer,
                       MakeHuggingFaceTokenizer(opened.model));
      return opened;
    }
    if (tokenizer_ == kTrained) {
      ASSIGN_OR_RETURN(opened.model, Train(interrupt, console));
      ASSIGN_OR_RETURN(opened.tokenizer,
                       MakeSentencePieceTokenizer(opened.model));
      return opened;
    }
    if (TokenizerIsPath()) return OpenTokenizer(tokenizer_);
    ASSIGN_OR_RETURN(opened.tokenizer, MakeTokenizer(tokenizer_));
    return opened;
  }

  bool TokenizerIsPath() const {
    std::error_code error;
    return absl::StrContains(tokenizer_, '/') ||
           std::filesystem::exists(tokenizer_, error);
  }

  absl::StatusOr<std::string> Train(Interrupt& interrupt, Console& console) {
    ASSIGN_OR_RETURN(const std::string program,
                     FindProgram("troupe-tokenizer", ThisProgram()));
    const std::string type = model_type_.empty() ? "unigram" : model_type_;
    ASSIGN_OR_RETURN(std::string sample,
                     SampleCorpus(files_, rules_, kSampleBytesMax));
    console.err << "training a " << type << " vocabulary of "
                << GroupedText(vocab_size_) << " on "
                << BytesText(static_cast<int64_t>(sample.size()))
                << " of text ..." << std::endl;
    return RunFilter({.command = {program, absl::StrCat(vocab_size_), type},
                      .input = std::move(sample),
                      .keep_going = [&] { return !interrupt.Arrived(); }});
  }

  absl::StatusOr<std::string> TrainByteLevel(Interrupt& interrupt,
                                             Console& console) {
    console.err << "training a byte-level BPE of " << GroupedText(vocab_size_)
                << " tokens ..." << std::endl;
    Progress progress(console, interrupt, "counting words: ");
    return TrainBpe({.files = files_,
                     .rules = rules_,
                     .unpack = !any_content_,
                     .vocab_size = vocab_size_,
                     .progress = [&](uint64_t done, uint64_t total) {
                       return progress.Show(static_cast<int64_t>(done),
                                            static_cast<int64_t>(total));
                     }});
  }

  absl::StatusOr<PreparedTokens> Tokenize(const OpenedTokenizer& opened,
                                          Interrupt& interrupt,
                                          Console& console) const {
    Progress progress(console, interrupt, "");
    PrepareTokensOptions options = {
        .files = files_,
        .path = out_,
        .rules = rules_,
        .unpack = !any_content_,
        .threads =
            threads_ == 0 ? UsableCoreCount() : static_cast<int>(threads_),
        .progress =
            [&](uint64_t done, uint64_t total) {
              return progress.Show(static_cast<int64_t>(done),
                                   static_cast<int64_t>(total));
            },
        .note = [&](const std::string& line) { console.err << line << "\n"; }};
    if (!opened.model.empty()) options.model = opened.model;
    absl::StatusOr<PreparedTokens> prepared =
        PrepareTokens(*opened.tokenizer, options);
    std::error_code error;
    const std::string unfinished = absl::StrCat(out_, ".partial");
    if (absl::IsCancelled(prepared.status()) &&
        std::filesystem::exists(unfinished, error)) {
      console.err << "\nwhat was done is in " << unfinished
                  << ", and the same command continues it\n";
    }
    return prepared;
  }

  std::vector<std::string> inputs_;
  std::vector<CorpusFile> files_;
  std::string format_;  // empty: by the name
  PartRules rules_;
  int64_t line_mib_max_ = 64;
  std::string tokenizer_;
  std::string trained_kind_;  // by --train-tokenizer
  int64_t vocab_size_ = 0;    // 0 and "": not given
  int64_t threads_ = 0;
  std::string model_type_;
  bool eos_per_line_ = false;
  bool any_content_ = false;
  bool completions_ = false;
  std::string chat_template_;
  int64_t sequence_length_ = 0;  // 0: not given
  std::unique_ptr<RecordEncoder> records_;
  std::string out_;
};

}  // namespace

std::unique_ptr<Command> MakeDataPrepare() {
  return std::make_unique<DataPrepare>();
}

}  // namespace troupe
