#include <filesystem>
#include <ostream>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/interrupt.h"
#include "proto/base/status.h"
#include "storage/chat_template/chat_format.h"
#include "storage/corpus/record_encoder.h"
#include "storage/dataset/open_tokenizer.h"
#include "storage/disk/roots.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr uint64_t kMessagesBytesMax = uint64_t{64} << 20;

class Generate final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Optional("JOB", job_,
                   "The job whose newest checkpoint writes (number, name or "
                   "latest)");
    flags.Text("--checkpoint", checkpoint_,
               {.value = "DIR", .text = "Or the checkpoint itself"});
    flags.Text("--prompt", prompt_, {.text = "The text to continue"});
    flags.Text("--prompt-ids", prompt_ids_,
               {.value = "1,2,3",
                .text = "Or its token ids, for models with a tokenizer that "
                        "Troupe does not read"});
    flags.Text("--messages", messages_,
               {.value = "FILE",
                .text = "Or a conversation, a JSON list of messages, or an "
                        "object with \"messages\" and \"tools\"; the model "
                        "writes the next message"});
    flags.Text("--tokenizer", tokenizer_,
               {.value = "DIR",
                .text = "Of --messages: the directory whose chat template "
                        "writes them"});
    flags.Text("--chat-template", chat_template_,
               {.value = "FILE",
                .text = "Of --messages: the template, in place of that"});
    flags.Switch("--ids", show_ids_,
                 "Write the new tokens' ids in place of their text");
    flags.Integer("--max-new-tokens", max_new_tokens_, {1, INT32_MAX},
                  {.value = "N", .text = "How much to write at most [256]"});
    flags.Switch("--ignore-eos", ignore_eos_,
                 "Go on past the model's end-of-text token, which else ends "
                 "the text");
    flags.Number("--temperature", temperature_,
                 {.value = "X",
                  .text = "0: always the likeliest; higher: bolder [0.8]"});
    flags.Integer("--top-k", top_k_, {0, 1 << 30},
                  {.value = "K",
                   .text = "Choose among the K likeliest tokens; 0: all [40]"});
    flags.Integer("--seed", seed_, {0, INT64_MAX},
                  {.value = "N", .text = "Of the choices [0]"});
    flags.Integer("--tensor", tensor_, {1, INT32_MAX},
                  {.value = "N",
                   .text = "Cut the model's units over N workers; without this "
                           "and --pipeline: one worker where the model fits "
                           "one, else as its job was cut"});
    flags.Integer("--pipeline", pipeline_, {1, INT32_MAX},
                  {.value = "N",
                   .text = "Cut the model into N stages, of --tensor workers "
                           "each"});
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    if (job_.empty() == checkpoint_.empty()) {
      return absl::InvalidArgumentError(
          "usage: give either a JOB or --checkpoint DIR");
    }
    if (temperature_ < 0) {
      return absl::InvalidArgumentError(
          "usage: --temperature: expected 0 or more");
    }
    RETURN_IF_ERROR(CheckPromptFlags());
    RETURN_IF_ERROR(WriteMessages());
    GenerateRequest request;
    RETURN_IF_ERROR(ReadPromptIds(request));
    Interrupt interrupt;
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    if (checkpoint_.empty()) {
      ASSIGN_OR_RETURN(const int64_t id, FindJob(*client, job_));
      request.set_job(id);
    } else {
      std::error_code error;
      request.set_checkpoint(RootName(checkpoint_).empty()
                                 ? std::filesystem::absolute(checkpoint_, error)
                                       .lexically_normal()
                                       .string()
                                 : checkpoint_);
    }
    request.set_prompt(prompt_);
    request.set_max_new_tokens(static_cast<int32_t>(max_new_tokens_));
    request.set_ignore_eos(ignore_eos_);
    request.set_temperature(temperature_);
    request.set_top_k(static_cast<int32_t>(top_k_));
    request.set_seed(seed_);
    if (tensor_ > 0) request.set_tensor(static_cast<int32_t>(tensor_));
    if (pipeline_ > 0) request.set_pipeline(static_cast<int32_t>(pipeline_));
    if (!show_ids_ && messages_.empty()) console.out << prompt_ << std::flush;
    const char* separator = "";
    const absl::Status status = client->Generate(
        request,
        [&](const GenerateResponse& response) {
          if (!show_ids_) console.out << response.text();
          for (const int32_t id : response.ids()) {
            if (show_ids_) console.out << std::exchange(separator, ",") << id;
          }
          console.out << std::flush;
        },
        // A reader that is gone (`| head`) waits for no more of it.
        [&] { return !interrupt.Arrived() && console.out.good(); });
    console.out << std::endl;
    return status;
  }

 private:
  absl::Status CheckPromptFlags() const {
    const int given = (prompt_.empty() ? 0 : 1) +
                      (prompt_ids_.empty() ? 0 : 1) +
                      (messages_.empty() ? 0 : 1);
    if (given != 1) {
      return absl::InvalidArgumentError(
          "usage: give either --prompt TEXT, --prompt-ids 1,2,3 or --messages "
          "FILE");
    }
    const bool has_template = !tokenizer_.empty() || !chat_template_.empty();
    if (has_template == messages_.empty()) {
      return absl::InvalidArgumentError(
          "usage: --messages needs the chat template of a model: --tokenizer "
          "DIR or --chat-template FILE, which are for --messages only");
    }
    return absl::OkStatus();
  }

  // The prompt is what the chat template makes of the messages.
  absl::Status WriteMessages() {
    if (messages_.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string text,
                     ReadWholeFile(messages_, kMessagesBytesMax));
    const absl::StatusOr<chat::Conversation> conversation =
        chat::ReadConversation(text);
    RETURN_IF_ERROR(Annotate(conversation.status(), messages_));
    ASSIGN_OR_RETURN(const chat::ChatFormat format,
                     chat::OpenChatFormat(tokenizer_, chat_template_));
    if (!tokenizer_.empty()) {
      ASSIGN_OR_RETURN(const OpenedTokenizer opened, OpenTokenizer(tokenizer_));
      RETURN_IF_ERROR(CheckTokensOf(format, *opened.tokenizer));
    }
    const auto chat = format.Render(*conversation, true);
    RETURN_IF_ERROR(Annotate(chat.status(), messages_));
    prompt_ = chat->text;
    return absl::OkStatus();
  }

  absl::Status ReadPromptIds(GenerateRequest& request) const {
    if (prompt_ids_.empty()) return absl::OkStatus();
    for (const absl::string_view word : absl::StrSplit(prompt_ids_, ',')) {
      int32_t id = 0;
      if (!absl::SimpleAtoi(word, &id) || id < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("usage: --prompt-ids: \"", word,
                         "\" is no token id, in \"", prompt_ids_, "\""));
      }
      request.add_prompt_ids(id);
    }
    return absl::OkStatus();
  }

  std::string job_;
  std::string checkpoint_;
  std::string prompt_;
  std::string prompt_ids_;
  std::string messages_;
  std::string tokenizer_;
  std::string chat_template_;
  bool show_ids_ = false;
  int64_t max_new_tokens_ = 256;
  bool ignore_eos_ = false;
  double temperature_ = 0.8;
  int64_t top_k_ = 40;
  int64_t seed_ = 0;
  int64_t tensor_ = 0;    // 0: not said
  int64_t pipeline_ = 0;  // the same
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeGenerate() { return std::make_unique<Generate>(); }

}  // namespace troupe
