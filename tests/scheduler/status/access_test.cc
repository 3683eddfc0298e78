#include "scheduler/status/access.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr char kToken[] = "0123456789abcdef";

class StatusAccessTest : public testing::Test {
 protected:
  AccessVerdict Judge(const HttpCredentials& credentials) const {
    return access_.Judge(credentials);
  }
  const StatusAccess access_{
      {.token = kToken, .names = {"ada", "ada.example"}, .port = 4322}};
};

TEST_F(StatusAccessTest, ATokenIsWanted) {
  for (const char* path : {"/", "/metrics", "/api/v1/jobs", "/healthz/", ""}) {
    HttpCredentials asked = {.path = path, .host = "127.0.0.1:4322"};
    EXPECT_EQ(Judge(asked), AccessVerdict::kNoToken) << path;
    for (const char* bad :
         {"Bearer", "Bearer ", "Bearer 0123456789abcde", "0123456789abcdef",
          "Bearer 0123456789abcdeF", "Basic 0123456789abcdef"}) {
      asked.authorization = bad;
      EXPECT_EQ(Judge(asked), AccessVerdict::kNoToken) << path << bad;
    }
    asked.authorization = "Bearer 0123456789abcdef";
    EXPECT_EQ(Judge(asked), AccessVerdict::kGranted) << path;
  }
}

TEST_F(StatusAccessTest, ALinkBecomesACookie) {
  EXPECT_EQ(Judge({.path = "/", .host = "localhost", .token = kToken}),
            AccessVerdict::kByLink);
  EXPECT_EQ(Judge({.path = "/", .host = "localhost", .token = "wrong"}),
            AccessVerdict::kNoToken);
  EXPECT_EQ(Judge({.path = "/metrics", .host = "localhost", .token = kToken}),
            AccessVerdict::kNoToken)
      << "links are for people";
  const std::string set = access_.set_cookie();
  const std::string cookie = set.substr(0, set.find(';'));
  EXPECT_EQ(set, absl::StrCat(cookie, "; Path=/; HttpOnly; SameSite=Lax"));
  EXPECT_TRUE(absl::StartsWith(cookie, "troupe-4322=")) << cookie;
  EXPECT_FALSE(absl::StrContains(cookie, kToken)) << "other ports see it";
  for (const std::string& good :
       {cookie, absl::StrCat("troupe-1=x; ", cookie, "; theme=dark")}) {
    EXPECT_EQ(Judge({.path = "/", .host = "ada", .cookie = good}),
              AccessVerdict::kGranted)
        << good;
  }
  const std::string value = cookie.substr(cookie.find('=') + 1);
  for (const std::string& bad :
       {absl::StrCat("troupe-4321=", value), std::string("troupe-4322="),
        std::string("troupe-4322"), absl::StrCat("x=", cookie),
        absl::StrCat(cookie, "0"), absl::StrCat("troupe-4322=", kToken)}) {
    EXPECT_EQ(Judge({.path = "/", .host = "ada", .cookie = bad}),
              AccessVerdict::kNoToken)
        << bad;
  }
}

TEST_F(StatusAccessTest, HttpsHasACookieForHttpsOnly) {
  const StatusAccess https({.token = kToken, .port = 1, .https = true});
  EXPECT_NE(https.set_cookie().find("; Secure"), std::string::npos);
}

// Another page's script can have the browser ask us under its own name.
TEST_F(StatusAccessTest, OtherHostsAreNotServed) {
  HttpCredentials asked = {.path = "/",
                           .authorization = "Bearer 0123456789abcdef"};
  for (const char* ours : {"ada", "ADA:4322", "ada.example:1", "localhost:4322",
                           "10.0.0.7", "10.0.0.7:4322", "[::1]:4322"}) {
    asked.host = ours;
    EXPECT_EQ(Judge(asked), AccessVerdict::kGranted) << ours;
  }
  for (const char* other :
       {"", "evil.example", "ada.evil.example:4322", "127.0.0.1.evil.example",
        "127.0.0.1:1:2", "[::1"}) {
    asked.host = other;
    EXPECT_EQ(Judge(asked), AccessVerdict::kOtherHost) << other;
  }
}

TEST_F(StatusAccessTest, EverybodyMayAskForItsHealth) {
  EXPECT_EQ(Judge({.path = "/healthz"}), AccessVerdict::kGranted);
}

}  // namespace
}  // namespace troupe
