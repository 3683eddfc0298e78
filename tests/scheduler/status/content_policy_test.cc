#include "scheduler/status/content_policy.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// echo -n 'alert(1)' | openssl dgst -sha256 -binary | base64
constexpr char kHash[] =
    "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='";

TEST(ContentPolicy, NamesTheScriptsThatAreThere) {
  const std::string policy =
      ContentPolicy("<style>a{}</style><script>alert(1)</script>");
  EXPECT_TRUE(absl::StrContains(
      policy, absl::StrCat("default-src 'none'; script-src ", kHash, ";")))
      << policy;
  EXPECT_TRUE(absl::StrContains(policy, "; style-src 'sha256-")) << policy;
  for (const char* loose : {"script-src 'unsafe", "*", "http", "unsafe-eval"}) {
    EXPECT_FALSE(absl::StrContains(policy, loose)) << loose;
  }
}

TEST(ContentPolicy, OfAPageWithoutAny) {
  EXPECT_TRUE(absl::StrContains(ContentPolicy("<p>"), "script-src 'none';"));
}

}  // namespace
}  // namespace troupe
