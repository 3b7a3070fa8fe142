package lambda

// event is what the kit reads of an event, whatever its shape. The wrappers of
// typed handlers fill it from the typed event, HTTP decodes it.
type event struct {
	Version    string              `json:"version"`
	Method     string              `json:"httpMethod"`
	Resource   string              `json:"resource"`
	Path       string              `json:"path"`
	RouteKey   string              `json:"routeKey"`
	RawPath    string              `json:"rawPath"`
	RawQuery   string              `json:"rawQueryString"`
	Query      map[string]string   `json:"queryStringParameters"`
	MultiQuery map[string][]string `json:"multiValueQueryStringParameters"`
	Headers    map[string]string   `json:"headers"`
	MultiHead  map[string][]string `json:"multiValueHeaders"`
	Cookies    []string            `json:"cookies"`
	PathParams map[string]string   `json:"pathParameters"`
	Body       string              `json:"body"`
	Base64     bool                `json:"isBase64Encoded"`
	MethodARN  string              `json:"methodArn"` // of authorizers, as is RouteARN
	RouteARN   string              `json:"routeArn"`
	Context    eventContext        `json:"requestContext"`
}

type eventContext struct {
	Stage        string         `json:"stage"`
	DomainName   string         `json:"domainName"`
	ConnectionID string         `json:"connectionId"` // of WebSocket APIs
	Authorizer   any            `json:"authorizer"`
	HTTP         *eventHTTP     `json:"http"`
	Identity     *eventIdentity `json:"identity"`
	ELB          *struct{}      `json:"elb"`
}

type eventHTTP struct {
	Method   string `json:"method"`
	SourceIP string `json:"sourceIp"`
}

// eventIdentity takes what only claims need as it comes: none of it may make an event
// unreadable.
type eventIdentity struct {
	SourceIP      string `json:"sourceIp"`
	AccessKey     any    `json:"accessKey"`
	AccountID     any    `json:"accountId"`
	Caller        any    `json:"caller"`
	User          any    `json:"user"`
	UserARN       any    `json:"userArn"`
	APIKeyID      any    `json:"apiKeyId"`
	CognitoID     any    `json:"cognitoIdentityId"`
	CognitoPoolID any    `json:"cognitoIdentityPoolId"`
}

// shape is one of the four forms in which Lambda hands on an HTTP request.
type shape uint8

const (
	shapeNone shape = iota
	shapeHTTPAPI
	shapeFunctionURL
	shapeREST
	shapeALB
)

// shape tells the form of an event that was decoded.
func (e *event) shape() shape {
	c := &e.Context
	switch {
	case c.ConnectionID != "", e.MethodARN != "", e.RouteARN != "":
		return shapeNone // a WebSocket message, an authorizer's question
	case e.Version == "2.0" && c.HTTP != nil && c.HTTP.Method != "":
		if isFunctionURL(c.DomainName) {
			return shapeFunctionURL
		}
		return shapeHTTPAPI
	case c.ELB != nil && e.Method != "":
		return shapeALB
	case c.Identity != nil && e.Method != "":
		return shapeREST
	}
	return shapeNone
}
