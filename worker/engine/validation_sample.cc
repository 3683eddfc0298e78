#include "worker/engine/validation_sample.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/find_program.h"
#include "proto/base/steady_time.h"
#include "proto/plan/model.h"
#include "proto/plan/precision.h"
#include "storage/dataset/utf8.h"
#include "worker/engine/draw_text.h"
#include "worker/engine/end_of_text.h"
#include "worker/model/generator.h"
#include "worker/rank/rank_memory.h"

namespace troupe {
namespace {

constexpr size_t kTextBytesMax = 16384;

// The model's without modules, on one rank, as the plan lays their parameters.
absl::StatusOr<UnitList> UnitsAsLaid(const Plan& plan) {
  const TrainingSpec& training = plan.job().training();
  ASSIGN_OR_RETURN(
      UnitList list,
      ModelUnits(WithoutModules(plan.job().model()),
                 {.sequences = 1,
                  .sequence_length = 1,
                  .dtype = ComputeType(training),
                  .lora = training.has_lora() ? &training.lora() : nullptr}));
  CHECK_LE(list.units.size(), static_cast<size_t>(plan.units_size()));
  for (size_t i = 0; i < list.units.size(); ++i) {
    const int u = static_cast<int>(i);
    std::map<std::string, int64_t> offsets;
    for (const Parameter& laid : plan.units(u).parameters()) {
      offsets[laid.name()] = laid.offset();
    }
    Unit& unit = list.units[u];
    for (Parameter& parameter : *unit.mutable_parameters()) {
      parameter.set_offset(offsets.at(parameter.name()));
    }
    unit.set_flat_elements(plan.units(u).flat_elements());
  }
  return list;
}

// What the validation after a step computes with.
const Buffer& ValidatedParameters(const Role& role, int unit) {
  const Program* const validate = FindProgram(role, Program::VALIDATE);
  CHECK(validate != nullptr) << "a sample of a job that validates nothing";
  for (const Buffer& buffer : validate->buffers()) {
    if (buffer.kind() != Buffer::PARAMETERS || buffer.unit() != unit) continue;
    CHECK(!buffer.slice()) << "unit " << unit;
    return buffer;
  }
  CHECK(false) << "unit " << unit << " is not validated";
  return validate->buffers(0);
}

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
    const RankState& state) {
  const JobSpec& job = state.plan->job();
  if (!job.data().has_sample() || state.rank() != 0) return nullptr;
  CHECK(state.data.has_value()) << "a rank that validates reads no data";
  ASSIGN_OR_RETURN(SamplePrompt prompt, SamplePromptOf(job, *state.data));
  ASSIGN_OR_RETURN(std::set<int32_t> end,
                   EndOfTextTokens({.model = job.model(),
                                    .tokenizer = prompt.tokenizer.get()}));
  return absl::WrapUnique(
      new ValidationSample(state, std::move(prompt), std::move(end)));
}

ValidationSample::ValidationSample(const RankState& state, SamplePrompt prompt,
                                   std::set<int32_t> end)
    : state_(state), prompt_(std::move(prompt)), end_(std::move(end)) {}

absl::StatusOr<TextSample> ValidationSample::Write(
    int64_t step, const std::function<absl::Status()>& go_on) const {
  const Plan& plan = *state_.plan;
  const SampleSpec& spec = plan.job().data().sample();
  TextSample sample;
  sample.set_prompt(Characters(spec.prompt()));
  ModelPart part = {.positions = static_cast<int64_t>(prompt_.ids.size()) +
                                 spec.tokens()};
  ASSIGN_OR_RETURN(part.units, UnitsAsLaid(plan));
  part.end = static_cast<int>(part.units.units.size());
  std::vector<void*> parameters;
  for (int u = 0; u < part.end; ++u) {
    const Buffer& buffer = ValidatedParameters(state_.role(), u);
    parameters.push_back(state_.memory.At(buffer, step).memory());
  }
  absl::StatusOr<std::unique_ptr<Generator>> generator =
      Generator::Create(state_.device, WithoutModules(plan.job().model()),
                        std::move(part), parameters);
  if (absl::IsResourceExhausted(generator.status())) {
    sample.set_error(Characters(generator.status().message()));
    return sample;
  }
  RETURN_IF_ERROR(generator.status());
  // Whoever waits in a collective meanwhile gives up after its timeout.
  const absl::Duration most = state_.collective_timeout / 2;
  const absl::Time end = SteadyNow() + most;
  bool late = false;
  const auto in_time = [&]() -> absl::Status {
    RETURN_IF_ERROR(go_on());
    late = SteadyNow() >= end;
    return late ? absl::DeadlineExceededError("the sample takes too long")
                : absl::OkStatus();
  };
  std::string text;
  absl::Status written =
      (*generator)
          ->Start(prompt_.ids, {.temperature = spec.temperature(),
                                .seed = spec.seed(),
                                .go_on = in_time});
  if (written.ok()) {
    written = DrawText(**generator,
                       {.tokenizer = prompt_.tokenizer.get(),
                        .tokens_max = spec.tokens(),
                        .end = end_},
                       [&](const TextPiece& piece) {
                         text += piece.text;
                         return in_time();
                       });
  }
  if (late) {
    sample.set_error(absl::StrCat(
        "it takes more than ", absl::FormatDuration(most),
        ", for which training waits; set a smaller data.sample.tokens"));
    return sample;
  }
  RETURN_IF_ERROR(written);
  sample.set_text(Characters(text));
  return sample;
}

}  // namespace troupe
