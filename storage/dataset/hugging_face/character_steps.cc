#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/hugging_face/normalizer_steps.h"

namespace troupe {
namespace {

// Appends what a character becomes.
using MapCharacter = void (*)(uint32_t code, std::string& out);

class CharacterStep final : public NormalizerStep {
 public:
  explicit CharacterStep(MapCharacter map) : map_(map) {}

  absl::Status Apply(absl::string_view text, bool continues,
                     PatternScratch& scratch, std::string& out) const override {
    for (size_t at = 0; at < text.size();) {
      const Character character = CharacterAt(text, at);
      map_(character.code, out);
      at += character.bytes;
    }
    return absl::OkStatus();
  }

 private:
  const MapCharacter map_;
};

NormalizerStepOr Make(const JsonPlace& place, MapCharacter map) {
  RETURN_IF_ERROR(place.CheckKeys({"type"}));
  return std::make_shared<const CharacterStep>(map);
}

void WithoutAccent(uint32_t code, std::string& out) {
  if (!IsMark(code)) AppendCharacter(code, out);
}

// As the neural translation models of "Attention Is All You Need" have it.
void CleanForTranslation(uint32_t code, std::string& out) {
  const auto within = [code](uint32_t first, uint32_t last) {
    return code >= first && code <= last;
  };
  if (within(1, 8) || code == 0xB || within(0xE, 0x1F) || code == 0x7F ||
      code == 0x8F || code == 0x9F) {
    return;
  }
  const bool space = code == '\t' || code == '\n' || code == '\f' ||
                     code == '\r' || code == 0x1680 || within(0x200B, 0x200F) ||
                     within(0x2028, 0x2029) || code == 0x2581 ||
                     code == 0xFEFF || code == 0xFFFD;
  AppendCharacter(space ? ' ' : code, out);
}

void AsByteCharacters(uint32_t code, std::string& out) {
  out += BytesAsCharacters(CharacterText(code));
}

}  // namespace

NormalizerStepOr MakeLowercase(const JsonPlace& place) {
  return Make(place, &AppendLowercase);
}
NormalizerStepOr MakeStripAccents(const JsonPlace& place) {
  return Make(place, &WithoutAccent);
}
NormalizerStepOr MakeNmt(const JsonPlace& place) {
  return Make(place, &CleanForTranslation);
}
NormalizerStepOr MakeByteLevelNormalizer(const JsonPlace& place) {
  return Make(place, &AsByteCharacters);
}

}  // namespace troupe
