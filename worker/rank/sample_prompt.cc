#include "worker/rank/sample_prompt.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"
#include "storage/dataset/make_tokenizer.h"

namespace troupe {

absl::StatusOr<SamplePrompt> SamplePromptOf(const JobSpec& job,
                                            const SampleReader& data) {
  constexpr char kPrompt[] = "data.sample.prompt";
  if (data.tokenizer().empty()) {
    return FieldError("data.sample",
                      "the token files do not say which tokenizer made them; "
                      "make them with `troupe data prepare`, or leave it out");
  }
  SamplePrompt prompt;
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      LoadTokenizer(data.tokenizer(), data.tokenizer_path());
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), "data.sample");
  prompt.tokenizer = *std::move(tokenizer);
  const SampleSpec& sample = job.data().sample();
  RETURN_IF_ERROR(
      Annotate(prompt.tokenizer->Encode(sample.prompt(), prompt.ids), kPrompt));
  if (prompt.ids.empty()) {
    return FieldError(kPrompt, "its tokenizer makes no token of it");
  }
  const auto outside = std::find_if(
      prompt.ids.begin(), prompt.ids.end(),
      [&](int32_t id) { return id < 0 || id >= job.model().vocab_size(); });
  if (outside != prompt.ids.end()) {
    return FieldError(kPrompt, absl::StrCat("token ", *outside,
                                            " of it is not in the "
                                            "model's vocabulary of ",
                                            job.model().vocab_size()));
  }
  const int64_t longest = LongestSequenceOf(job.model()).positions;
  const int64_t positions =
      static_cast<int64_t>(prompt.ids.size()) + sample.tokens();
  if (positions <= longest) return prompt;
  return FieldError(
      kPrompt,
      absl::StrCat("has ", prompt.ids.size(), " tokens, with ", sample.tokens(),
                   " more that data.sample.tokens adds, and the model sees ",
                   longest, "; shorten it, or add fewer"));
}

}  // namespace troupe
