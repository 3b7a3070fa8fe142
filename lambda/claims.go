package lambda

import (
	"github.com/aws/aws-lambda-go/events"

	"github.com/sallyport/sallyport/internal/claims"
)

// What the identity of an IAM caller is named by for keys: as HTTP APIs name it,
// whose names Function URLs share and REST APIs nearly.
const (
	claimAccessKey    = "accessKey"
	claimAccount      = "accountId"
	claimCaller       = "callerId"
	claimUser         = "userId"
	claimUserARN      = "userArn"
	claimOrganization = "principalOrgId"
	claimCognito      = "cognitoIdentityId"
	claimCognitoPool  = "cognitoIdentityPoolId"
	claimAPIKey       = "apiKeyId"
)

// httpAPIClaims finds what an authorizer of an HTTP API said: of its three kinds an
// event has one.
func httpAPIClaims(a *events.APIGatewayV2HTTPRequestContextAuthorizerDescription) claims.Lookup {
	if a == nil {
		return nil
	}
	return func(name string) any {
		if a.JWT != nil {
			if value, ok := a.JWT.Claims[name]; ok {
				return value
			}
		}
		if value, ok := a.Lambda[name]; ok {
			return value
		}
		if a.IAM == nil {
			return nil
		}
		switch name {
		case claimAccessKey:
			return a.IAM.AccessKey
		case claimAccount:
			return a.IAM.AccountID
		case claimCaller:
			return a.IAM.CallerID
		case claimUser:
			return a.IAM.UserID
		case claimUserARN:
			return a.IAM.UserARN
		case claimOrganization:
			return a.IAM.PrincipalOrgID
		case claimCognito:
			return a.IAM.CognitoIdentity.IdentityID
		case claimCognitoPool:
			return a.IAM.CognitoIdentity.IdentityPoolID
		}
		return nil
	}
}

func functionURLClaims(a *events.LambdaFunctionURLRequestContextAuthorizerDescription) claims.Lookup {
	if a == nil || a.IAM == nil {
		return nil
	}
	return func(name string) any {
		switch name {
		case claimAccessKey:
			return a.IAM.AccessKey
		case claimAccount:
			return a.IAM.AccountID
		case claimCaller:
			return a.IAM.CallerID
		case claimUser:
			return a.IAM.UserID
		case claimUserARN:
			return a.IAM.UserARN
		}
		return nil
	}
}

// restClaims finds what the authorizer of a REST API said, and behind it who IAM or a
// usage plan says the caller is. Nothing else of the identity is proven: a User-Agent
// is the caller's to write.
func restClaims(authorizer map[string]any, identity *events.APIGatewayRequestIdentity) claims.Lookup {
	return func(name string) any {
		if value, ok := authorized(authorizer, name); ok {
			return value
		}
		switch name {
		case claimAccessKey:
			return identity.AccessKey
		case claimAccount:
			return identity.AccountID
		case claimCaller:
			return identity.Caller
		case claimUser:
			return identity.User
		case claimUserARN:
			return identity.UserArn
		case claimCognito:
			return identity.CognitoIdentityID
		case claimCognitoPool:
			return identity.CognitoIdentityPoolID
		case claimAPIKey:
			return identity.APIKeyID
		}
		return nil
	}
}

// authorized finds a claim of a user pool or a JWT authorizer, which are in an object
// of their own, or a field of a Lambda authorizer's context.
func authorized(authorizer map[string]any, name string) (value any, ok bool) {
	if tokens, isObject := authorizer["claims"].(map[string]any); isObject {
		value, ok = tokens[name]
		return value, ok
	}
	value, ok = authorizer[name]
	return value, ok
}

// claims finds the same in an event that was decoded without its type, in which
// anything may stand anywhere.
func (e *event) claims() claims.Lookup {
	authorizer, _ := e.Context.Authorizer.(map[string]any)
	identity := e.Context.Identity
	if authorizer == nil && identity == nil {
		return nil
	}
	if identity != nil {
		return restClaims(authorizer, &events.APIGatewayRequestIdentity{
			AccessKey: asText(identity.AccessKey), AccountID: asText(identity.AccountID), Caller: asText(identity.Caller),
			User: asText(identity.User), UserArn: asText(identity.UserARN), APIKeyID: asText(identity.APIKeyID),
			CognitoIdentityID: asText(identity.CognitoID), CognitoIdentityPoolID: asText(identity.CognitoPoolID),
		})
	}
	return func(name string) any {
		for _, path := range [...][2]string{{"jwt", "claims"}, {"lambda"}} {
			values := within(authorizer, path[0])
			if path[1] != "" {
				values = within(values, path[1])
			}
			if value, ok := values[name]; ok {
				return value
			}
		}
		iam := within(authorizer, "iam")
		switch name {
		case claimAccessKey, claimAccount, claimCaller, claimUser, claimUserARN, claimOrganization:
			return iam[name]
		case claimCognito:
			return within(iam, "cognitoIdentity")["identityId"]
		case claimCognitoPool:
			return within(iam, "cognitoIdentity")["identityPoolId"]
		}
		return nil
	}
}

func within(object map[string]any, name string) map[string]any {
	inner, _ := object[name].(map[string]any)
	return inner
}

func asText(value any) string {
	text, _ := value.(string)
	return text
}
