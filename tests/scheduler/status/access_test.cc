#include "scheduler/status/access.h"

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
  EXPECT_EQ(access_.set_cookie(),
            "troupe-4322=0123456789abcdef; Path=/; HttpOnly; SameSite=Strict");
  for (const char* good :
       {"troupe-4322=0123456789abcdef",
        "troupe-1=x; troupe-4322=0123456789abcdef; theme=dark"}) {
    EXPECT_EQ(Judge({.path = "/", .host = "ada", .cookie = good}),
              AccessVerdict::kGranted)
        << good;
  }
  for (const char* bad :
       {"troupe-4321=0123456789abcdef", "troupe-4322=", "troupe-4322",
        "x=troupe-4322=0123456789abcdef", "troupe-4322=0123456789abcdef0"}) {
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
