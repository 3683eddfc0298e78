#include "worker/engine/validation_sample.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "storage/dataset/utf8.h"
#include "worker/engine/draw_text.h"
#include "worker/engine/end_of_text.h"
#include "worker/model/generator.h"

namespace troupe {
namespace {

constexpr size_t kTextBytesMax = 16384;

// Characters of a text, as far as it is UTF-8 and not too long; other bytes
// become U+FFFD.
std::string Characters(absl::string_view text) {
  std::string characters;
  while (!text.empty() && characters.size() < kTextBytesMax) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) {
      characters += "\xEF\xBF\xBD";
      text.remove_prefix(1);
      continue;
    }
    absl::StrAppend(&characters, text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return characters;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ValidationSample>> ValidationSample::Create(
    RankState& state) {
  const JobSpec& job = state.plan->job();
  if (!job.data().has_sample()) return nullptr;
  auto sample = absl::WrapUnique(new ValidationSample(state));
  if (state.rank() != 0) {
    const bool writes = state.plan->decoding().has_world();
    return writes ? std::move(sample) : nullptr;
  }
  CHECK(state.data.has_value()) << "a rank that validates reads no data";
  ASSIGN_OR_RETURN(sample->prompt_, SamplePromptOf(job, *state.data));
  ASSIGN_OR_RETURN(
      const std::set<int32_t> end,
      EndOfTextTokens({.model = job.model(),
                       .tokenizer = sample->prompt_.tokenizer.get()}));
  sample->end_ = {end.begin(), end.end()};
  return sample;
}

absl::StatusOr<absl::optional<TextSample>> ValidationSample::Write(
    const std::function<absl::Status()>& go_on) {
  // Ranks that write nothing wait in a collective, and give up after its
  // timeout.
  const absl::Duration most = state_.collective_timeout / 2;
  ASSIGN_OR_RETURN(const std::unique_ptr<SamplePeers> peers,
                   SamplePeers::Create(state_, SteadyNow() + most));
  RETURN_IF_ERROR(peers->ShareNumbers(prompt_.ids));
  RETURN_IF_ERROR(peers->ShareNumbers(end_));
  ASSIGN_OR_RETURN(TextSample sample, WriteWith(*peers, go_on));
  if (state_.rank() != 0) return absl::nullopt;
  const SampleSpec& spec = state_.plan->job().data().sample();
  sample.set_prompt(Characters(spec.prompt()));
  if (!peers->late()) return sample;
  sample.clear_text();
  sample.set_error(absl::StrCat(
      "it takes more than ", absl::FormatDuration(most),
      ", for which training waits; set a smaller data.sample.tokens"));
  return sample;
}

absl::StatusOr<TextSample> ValidationSample::WriteWith(
    SamplePeers& peers, const std::function<absl::Status()>& go_on) const {
  const JobSpec& job = state_.plan->job();
  const SampleSpec& spec = job.data().sample();
  ModelPart part = peers.Part();
  part.positions = static_cast<int64_t>(prompt_.ids.size()) + spec.tokens();
  std::unique_ptr<Generator> generator;
  absl::Status made;
  if (!part.runs.empty()) {
    auto created =
        Generator::Create(state_.device, job.model(), std::move(part));
    made = created.status();
    if (created.ok()) generator = *std::move(created);
  }
  const bool lacks_memory = absl::IsResourceExhausted(made);
  if (!lacks_memory) RETURN_IF_ERROR(made);
  TextSample sample;
  ASSIGN_OR_RETURN(const bool all, peers.AllReady(made.ok()));
  if (!all) {
    sample.set_error(lacks_memory
                         ? Characters(made.message())
                         : "the device of another rank has no memory for it");
    return sample;
  }
  std::string text;
  const absl::Status written = generator == nullptr
                                   ? Hear(peers, go_on)
                                   : Draw(peers, *generator, go_on, text);
  if (!peers.late()) RETURN_IF_ERROR(written);
  sample.set_text(Characters(text));
  return sample;
}

absl::Status ValidationSample::Draw(SamplePeers& peers, Generator& generator,
                                    const std::function<absl::Status()>& go_on,
                                    std::string& text) const {
  const SampleSpec& spec = state_.plan->job().data().sample();
  const auto in_time = [&]() -> absl::Status {
    RETURN_IF_ERROR(go_on());
    return peers.AloneInTime();
  };
  RETURN_IF_ERROR(
      generator.Start(prompt_.ids, {.temperature = spec.temperature(),
                                    .seed = spec.seed(),
                                    .go_on = in_time}));
  return DrawText(generator,
                  {.tokenizer = prompt_.tokenizer.get(),
                   .tokens_max = spec.tokens(),
                   .end = {end_.begin(), end_.end()}},
                  [&](const TextPiece& piece) {
                    text += piece.text;
                    return in_time();
                  });
}

absl::Status ValidationSample::Hear(
    SamplePeers& peers, const std::function<absl::Status()>& go_on) const {
  for (int64_t i = 0; i < state_.plan->job().data().sample().tokens(); ++i) {
    ASSIGN_OR_RETURN(const int32_t token, peers.Share(0));
    if (std::find(end_.begin(), end_.end(), token) != end_.end()) break;
    RETURN_IF_ERROR(go_on());
  }
  return absl::OkStatus();
}

}  // namespace troupe
