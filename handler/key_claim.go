package handler

import "github.com/sallyport/sallyport/internal/claims"

const kindClaim = "claim"

// ByClaim counts by what an authorizer of API Gateway or a Function URL said of the
// caller; behind any other server there are no claims. Package lambda finds them:
//
//   - a JWT authorizer's or a Cognito user pool's: the token's claims ("sub",
//     "cognito:username", "https://example.com/tenant": a dot is part of the name);
//   - a Lambda authorizer's: the fields of its context, and of a REST API also
//     "principalId";
//   - IAM's: "userArn", "userId", "accountId", "callerId", "accessKey",
//     "principalOrgId", "cognitoIdentityId", "cognitoIdentityPoolId", under these names
//     for all kinds of API;
//   - a usage plan's: "apiKeyId", of a REST API.
//
// A number counts if it is whole and below 2^53, true and false by their names; a
// list, an object, null and an empty text are no claim. A request without the claim is
// counted by the client's address. New reports an empty name.
func ByClaim(name string) Key {
	if !isFieldName(name) {
		return Key{invalid{textOf(kindClaim, name), "want a claim's name"}}
	}
	return Key{textKey{text: claimText(name)}}
}

type claimText string

func (c claimText) find(q *inquiry) (string, presence) {
	value, ok := claims.Text(q.r.Context(), string(c))
	if !ok {
		return "", absent
	}
	return value, present
}

func (c claimText) kind() string { return kindClaim }
func (c claimText) name() string { return string(c) }
func (c claimText) rank() rank   { return rankCaller }
