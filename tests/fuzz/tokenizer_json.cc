// Any text as a Hugging Face tokenizer.json. One that is accepted encodes texts
// in several scripts, without a crash; each id that comes of it has a text; and
// a text that is cut has the ids of the whole.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "storage/dataset/hugging_face/tokenizer.h"

namespace {

constexpr absl::string_view kTexts[] = {
    "Hello, world! It's 12345 o'clock.\n\n  x = a[i] + 2;\tand so on",
    "e\xCC\x81t\xC3\xA9 \xE5\xAD\x97\xE5\xAD\x97 "
    "\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD <s> \xFF\xE2\x82 "
    "\xD0\x9F\xD1\x80\xD0\xB8 </s> aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

void Check(const troupe::Tokenizer& tokenizer, absl::string_view text) {
  std::vector<int32_t> whole;
  // A model may have no token for what it does not know; a pattern may give up.
  if (!tokenizer.Encode(text, whole).ok()) return;
  for (const int32_t id : whole) {
    CHECK_OK(tokenizer.TokenText(id).status());
  }
  CHECK_OK(tokenizer.Decode(whole).status());
  size_t searched = 0;
  const size_t cut = tokenizer.CutPoint(text, searched);
  CHECK(cut <= text.size() && searched <= text.size());
  if (cut == 0) return;
  std::vector<int32_t> parts;
  CHECK_OK(tokenizer.Encode(text.substr(0, cut), parts));
  CHECK_OK(tokenizer.EncodeLater(text.substr(cut), parts));
  CHECK(parts == whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view json(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = troupe::MakeHuggingFaceTokenizer(json);
  if (!tokenizer.ok()) return 0;
  for (const absl::string_view text : kTexts) Check(**tokenizer, text);
  return 0;
}
