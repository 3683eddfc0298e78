#include "storage/dataset/hugging_face/normalizer.h"

#include <utility>

#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/hugging_face/normalizer_steps.h"

namespace troupe {
namespace {

constexpr size_t kNormalizerStepsMax = 256;
constexpr int kNormalizerDepthMax = 16;

struct NormalizerRow {
  absl::string_view type;
  NormalizerStepOr (*make)(const JsonPlace& place);
};

constexpr NormalizerRow kNormalizers[] = {
    {"NFC", &MakeNfc},
    {"NFD", &MakeNfd},
    {"NFKC", &MakeNfkc},
    {"NFKD", &MakeNfkd},
    {"BertNormalizer", &MakeBertNormalizer},
    {"Lowercase", &MakeLowercase},
    {"StripAccents", &MakeStripAccents},
    {"Nmt", &MakeNmt},
    {"ByteLevel", &MakeByteLevelNormalizer},
    {"Strip", &MakeStrip},
    {"Replace", &MakeReplace},
    {"Prepend", &MakePrepend},
    {"Precompiled", &MakePrecompiled},
};

using Steps = std::vector<std::shared_ptr<const NormalizerStep>>;

absl::Status AddSteps(const JsonPlace& place, int depth, Steps& steps) {
  if (depth > kNormalizerDepthMax || steps.size() >= kNormalizerStepsMax) {
    return place.Error("has too many normalizers");
  }
  ASSIGN_OR_RETURN(const std::string type, place.Type());
  if (type == "Sequence") {
    RETURN_IF_ERROR(place.CheckKeys({"type", "normalizers"}));
    ASSIGN_OR_RETURN(const JsonPlace list, place.Field("normalizers"));
    ASSIGN_OR_RETURN(const std::vector<JsonPlace> parts, list.Elements());
    for (const JsonPlace& part : parts) {
      RETURN_IF_ERROR(AddSteps(part, depth + 1, steps));
    }
    return absl::OkStatus();
  }
  for (const NormalizerRow& row : kNormalizers) {
    if (row.type != type) continue;
    ASSIGN_OR_RETURN(std::shared_ptr<const NormalizerStep> step,
                     row.make(place));
    steps.push_back(std::move(step));
    return absl::OkStatus();
  }
  return place.UnknownType(type);
}

}  // namespace

absl::StatusOr<TextNormalizer> TextNormalizer::Parse(const JsonPlace& place) {
  TextNormalizer normalizer;
  if (place.IsNull()) return normalizer;
  RETURN_IF_ERROR(AddSteps(place, 0, normalizer.steps_));
  return normalizer;
}

absl::StatusOr<absl::string_view> TextNormalizer::Normalize(
    absl::string_view text, bool continues, PatternScratch& patterns,
    NormalizerScratch& scratch) const {
  std::string* out = &scratch.first;
  std::string* other = &scratch.second;
  for (const auto& step : steps_) {
    if (step->Keeps(text)) continue;
    out->clear();
    RETURN_IF_ERROR(step->Apply(text, continues, patterns, *out));
    text = *out;
    std::swap(out, other);
  }
  return text;
}

absl::optional<Seam> TextNormalizer::SeamAfter(Seam seam,
                                               PatternScratch& patterns) const {
  for (const auto& step : steps_) {
    if (!step->IsLocal(seam, patterns)) return absl::nullopt;
    if (step->IsOfEnds()) continue;
    // As what is in the middle of a text.
    std::string parts[3];
    const uint32_t codes[3] = {seam.before, seam.after, seam.next};
    for (int i = 0; i < 3; ++i) {
      const std::string one = CharacterText(codes[i]);
      if (step->Keeps(one)) {
        parts[i] = one;
      } else if (!step->Apply(one, /*continues=*/true, patterns, parts[i])
                      .ok()) {
        return absl::nullopt;
      }
      if (parts[i].empty()) return absl::nullopt;
    }
    const Character after = CharacterAt(parts[1], 0);
    if (after.bytes != parts[1].size()) return absl::nullopt;
    seam = {.before = CharacterBefore(parts[0], parts[0].size()).code,
            .after = after.code,
            .next = CharacterAt(parts[2], 0).code};
  }
  return seam;
}

}  // namespace troupe
